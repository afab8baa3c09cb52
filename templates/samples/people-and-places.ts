/** Names of people, companies, streets and towns that fit each other, by country. Invented combinations, real towns. */

export interface Town {
  readonly city: string;
  readonly postalCode: string;
  readonly state: string | null;
  readonly latitude: number;
  readonly longitude: number;
  /** Country and area code of a telephone number. */
  readonly dial: string;
}

export interface Country {
  readonly code: string;
  /** How many of a hundred accounts are there. */
  readonly share: number;
  readonly region: 'central' | 'north' | 'south' | 'west' | 'americas';
  readonly culture: keyof typeof CULTURES;
  readonly taxPrefix: string;
  readonly taxDigits: number;
  readonly towns: readonly Town[];
}

export interface Culture {
  readonly women: readonly string[];
  readonly men: readonly string[];
  readonly families: readonly string[];
  readonly streets: readonly string[];
  /** House number before the street, as in "12 High Street". */
  readonly numberFirst: boolean;
  /** Suffixes of company names after a family name or town. */
  readonly trades: readonly (readonly [word: string, industry: string])[];
  readonly legalForms: readonly string[];
}

const town = (
  city: string,
  postalCode: string,
  latitude: number,
  longitude: number,
  dial: string,
  state: string | null = null,
): Town => ({ city, postalCode, state, latitude, longitude, dial });

const words = (text: string): string[] => text.split(' ');

export const CULTURES = {
  german: {
    women: words('Anna Katharina Sabine Julia Petra Claudia Lena Monika Heike Franziska Birgit Nina Theresa Johanna'),
    men: words('Thomas Michael Andreas Stefan Jan Lukas Matthias Jürgen Florian Tobias Bernd Felix Markus Holger'),
    families: words(
      'Müller Schneider Fischer Weber Wagner Becker Hoffmann Schäfer Koch Bauer Richter Klein Wolf Neumann Schwarz Zimmermann Braun Krüger Hartmann Lange Werner Krause Lehmann Köhler Maier Huber Brandt Seidel Vogel Friedrich',
    ),
    streets: words(
      'Hauptstraße Bahnhofstraße Gartenweg Industriestraße Lindenallee Schillerstraße Am-Hafen Marktplatz',
    ),
    numberFirst: false,
    trades: [
      ['Metallbau', 'manufacturing'],
      ['Maschinenfabrik', 'manufacturing'],
      ['Logistik', 'transport'],
      ['Bau', 'construction'],
      ['Energietechnik', 'energy'],
      ['Software', 'software'],
      ['Feinkost', 'food'],
      ['Medizintechnik', 'health'],
      ['Immobilien', 'realEstate'],
      ['Steuerberatung', 'professionalServices'],
      ['Autohaus', 'automotive'],
      ['Verlag', 'media'],
    ],
    legalForms: ['GmbH', 'GmbH & Co. KG', 'AG', 'e. K.', 'GmbH'],
  },
  french: {
    women: words('Camille Claire Sophie Isabelle Nathalie Chloé Hélène Manon Aurélie Sandrine Juliette Margaux'),
    men: words('Nicolas Julien Laurent Pierre Mathieu Olivier Thierry Hugo Antoine Vincent Sébastien Guillaume'),
    families: words(
      'Martin Bernard Dubois Moreau Laurent Lefebvre Roux Fournier Girard Bonnet Lambert Fontaine Rousseau Mercier Garnier Chevalier Perrin Morel Gauthier Renard',
    ),
    streets: ['rue de la République', 'avenue Jean Jaurès', 'rue du Commerce', 'boulevard Voltaire', 'rue des Lilas'],
    numberFirst: true,
    trades: [
      ['Bâtiment', 'construction'],
      ['Transports', 'transport'],
      ['Conseil', 'professionalServices'],
      ['Distribution', 'retail'],
      ['Énergies', 'energy'],
      ['Santé', 'health'],
      ['Industries', 'manufacturing'],
      ['Hôtels', 'hospitality'],
      ['Vignobles', 'agriculture'],
      ['Numérique', 'software'],
    ],
    legalForms: ['SARL', 'SAS', 'SA', 'SAS'],
  },
  english: {
    women: words('Emma Sarah Laura Rachel Hannah Olivia Grace Megan Charlotte Amelia Fiona Victoria Jessica Katherine'),
    men: words('James David Andrew Daniel Oliver Matthew Ryan Patrick Simon Edward George Benjamin Samuel William'),
    families: words(
      "Smith Taylor Walker Wright Hughes Edwards Turner Carter Murphy O'Brien Bennett Cooper Ward Brooks Foster Reynolds Hayes Sullivan Parker Mitchell Campbell Fraser Grant Whitaker Holloway",
    ),
    streets: [
      'High Street',
      'Station Road',
      'Park Avenue',
      'Mill Lane',
      'Victoria Road',
      'Harbour Street',
      'Main Street',
    ],
    numberFirst: true,
    trades: [
      ['Logistics', 'transport'],
      ['Engineering', 'manufacturing'],
      ['Foods', 'food'],
      ['Insurance', 'finance'],
      ['Systems', 'software'],
      ['Health', 'health'],
      ['Properties', 'realEstate'],
      ['Media', 'media'],
      ['Builders', 'construction'],
      ['Energy', 'energy'],
      ['Academy', 'education'],
      ['Stores', 'retail'],
    ],
    legalForms: ['Ltd', 'plc', 'Ltd', 'LLP'],
  },
  american: {
    women: words('Emily Ashley Jennifer Megan Lauren Nicole Stephanie Danielle Maria Rebecca Kimberly Alicia'),
    men: words('Michael Christopher Joshua Brandon Kevin Jason Tyler Eric Carlos Brian Jonathan Marcus'),
    families: words(
      'Johnson Williams Anderson Thompson Martinez Robinson Clark Lewis Rodriguez Young Hernandez King Scott Adams Nelson Hill Campbell Rivera Perez Roberts',
    ),
    streets: [
      'Main Street',
      'Oak Avenue',
      'Washington Boulevard',
      'Maple Drive',
      'Market Street',
      'Industrial Parkway',
    ],
    numberFirst: true,
    trades: [
      ['Logistics', 'transport'],
      ['Manufacturing', 'manufacturing'],
      ['Foods', 'food'],
      ['Financial', 'finance'],
      ['Software', 'software'],
      ['Medical', 'health'],
      ['Realty', 'realEstate'],
      ['Media', 'media'],
      ['Construction', 'construction'],
      ['Energy', 'energy'],
      ['Farms', 'agriculture'],
    ],
    legalForms: ['Inc.', 'LLC', 'Corp.', 'Inc.'],
  },
  italian: {
    women: words('Giulia Francesca Chiara Elena Martina Paola Silvia Valentina Alessia Federica'),
    men: words('Marco Luca Andrea Giuseppe Matteo Davide Stefano Alessandro Paolo Riccardo'),
    families: words(
      'Rossi Russo Ferrari Bianchi Romano Colombo Ricci Marino Greco Bruno Gallo Conti Costa Giordano Mancini Rizzo Lombardi Moretti',
    ),
    streets: ['Via Roma', 'Via Garibaldi', 'Corso Italia', 'Via Dante', 'Viale Europa'],
    numberFirst: false,
    trades: [
      ['Meccanica', 'manufacturing'],
      ['Trasporti', 'transport'],
      ['Alimentari', 'food'],
      ['Costruzioni', 'construction'],
      ['Arredamenti', 'retail'],
      ['Consulenza', 'professionalServices'],
      ['Energia', 'energy'],
      ['Alberghi', 'hospitality'],
    ],
    legalForms: ['S.r.l.', 'S.p.A.', 'S.r.l.'],
  },
  spanish: {
    women: words('María Carmen Lucía Laura Marta Cristina Elena Paula Raquel Beatriz'),
    men: words('Javier Carlos Alejandro Pablo Miguel Sergio Álvaro Diego Fernando Rubén'),
    families: words(
      'García Fernández González López Martínez Sánchez Pérez Gómez Ruiz Díaz Moreno Muñoz Álvarez Romero Navarro Torres Vázquez Ramos',
    ),
    streets: ['Calle Mayor', 'Avenida de la Constitución', 'Calle del Sol', 'Paseo de Gracia', 'Calle Real'],
    numberFirst: false,
    trades: [
      ['Construcciones', 'construction'],
      ['Transportes', 'transport'],
      ['Alimentación', 'food'],
      ['Ingeniería', 'manufacturing'],
      ['Consultores', 'professionalServices'],
      ['Hoteles', 'hospitality'],
      ['Energías', 'energy'],
      ['Seguros', 'finance'],
    ],
    legalForms: ['S.L.', 'S.A.', 'S.L.'],
  },
  portuguese: {
    women: words('Ana Beatriz Inês Mariana Catarina Juliana Fernanda Patrícia Camila Rita'),
    men: words('João Pedro Tiago Rafael Bruno Gustavo Ricardo Nuno Rodrigo Miguel'),
    families: words(
      'Silva Santos Ferreira Pereira Oliveira Costa Rodrigues Martins Sousa Fernandes Gonçalves Almeida Ribeiro Carvalho Teixeira Moreira',
    ),
    streets: ['Rua Augusta', 'Avenida da Liberdade', 'Rua do Comércio', 'Avenida Paulista', 'Rua das Flores'],
    numberFirst: false,
    trades: [
      ['Construções', 'construction'],
      ['Transportes', 'transport'],
      ['Alimentos', 'food'],
      ['Metalúrgica', 'manufacturing'],
      ['Tecnologia', 'software'],
      ['Saúde', 'health'],
      ['Consultoria', 'professionalServices'],
    ],
    legalForms: ['Lda.', 'S.A.', 'Lda.'],
  },
  dutch: {
    women: words('Sanne Lotte Marieke Anouk Femke Eva Ingrid Saskia Iris Maaike'),
    men: words('Daan Sander Jeroen Bram Pieter Maarten Ruben Thijs Koen Wouter'),
    families: [
      'de Vries',
      'Jansen',
      'van den Berg',
      'Bakker',
      'Visser',
      'Smit',
      'Meijer',
      'Mulder',
      'Bos',
      'Peters',
      'Hendriks',
      'van Dijk',
      'Dekker',
      'Brouwer',
      'Vermeulen',
      'Willems',
    ],
    streets: words('Dorpsstraat Kerkstraat Stationsweg Molenlaan Havenkade Industrieweg'),
    numberFirst: false,
    trades: [
      ['Transport', 'transport'],
      ['Techniek', 'manufacturing'],
      ['Bouw', 'construction'],
      ['Bloemen', 'agriculture'],
      ['Advies', 'professionalServices'],
      ['Zuivel', 'food'],
      ['Automatisering', 'software'],
    ],
    legalForms: ['B.V.', 'N.V.', 'B.V.'],
  },
  nordic: {
    women: words('Ingrid Astrid Freja Sofie Maja Linnea Karin Emilie Signe Elin'),
    men: words('Erik Lars Anders Magnus Henrik Nils Mikkel Oskar Johan Rasmus'),
    families: words(
      'Andersson Johansson Karlsson Nilsson Hansen Olsen Larsen Berg Lindberg Lund Dahl Nyström Jensen Kristensen Holm Sandberg',
    ),
    streets: words('Storgatan Kungsgatan Hamngatan Skolevej Havnegata Industrivägen'),
    numberFirst: false,
    trades: [
      ['Skog', 'agriculture'],
      ['Energi', 'energy'],
      ['Fisk', 'food'],
      ['Data', 'software'],
      ['Bygg', 'construction'],
      ['Logistikk', 'transport'],
      ['Teknik', 'manufacturing'],
      ['Helse', 'health'],
    ],
    legalForms: ['AB', 'AS', 'ApS', 'AB'],
  },
  polish: {
    women: words('Agnieszka Katarzyna Magdalena Joanna Ewa Monika Aleksandra Natalia'),
    men: words('Piotr Tomasz Marcin Paweł Krzysztof Jakub Michał Wojciech'),
    families: words(
      'Nowak Kowalczyk Mazur Krawczyk Kaczmarek Piotrowski Grabowski Zając Pawlak Michalski Król Wieczorek Jabłoński Wróbel',
    ),
    streets: ['ul. Długa', 'ul. Polna', 'ul. Ogrodowa', 'ul. Warszawska', 'ul. Przemysłowa'],
    numberFirst: false,
    trades: [
      ['Budownictwo', 'construction'],
      ['Transport', 'transport'],
      ['Meble', 'manufacturing'],
      ['Informatyka', 'software'],
      ['Spożywcza', 'food'],
    ],
    legalForms: ['Sp. z o.o.', 'S.A.', 'Sp. z o.o.'],
  },
} satisfies Record<string, Culture>;

export const COUNTRIES: readonly Country[] = [
  {
    code: 'DE',
    share: 34,
    region: 'central',
    culture: 'german',
    taxPrefix: 'DE',
    taxDigits: 9,
    towns: [
      town('Berlin', '10117', 52.517, 13.389, '+49 30', 'Berlin'),
      town('Hamburg', '20095', 53.55, 10.0, '+49 40', 'Hamburg'),
      town('München', '80331', 48.137, 11.575, '+49 89', 'Bayern'),
      town('Köln', '50667', 50.938, 6.957, '+49 221', 'Nordrhein-Westfalen'),
      town('Stuttgart', '70173', 48.776, 9.183, '+49 711', 'Baden-Württemberg'),
      town('Leipzig', '04109', 51.34, 12.375, '+49 341', 'Sachsen'),
      town('Nürnberg', '90402', 49.454, 11.077, '+49 911', 'Bayern'),
      town('Bremen', '28195', 53.076, 8.807, '+49 421', 'Bremen'),
      town('Freiburg', '79098', 47.996, 7.849, '+49 761', 'Baden-Württemberg'),
      town('Kassel', '34117', 51.316, 9.498, '+49 561', 'Hessen'),
    ],
  },
  {
    code: 'AT',
    share: 7,
    region: 'central',
    culture: 'german',
    taxPrefix: 'ATU',
    taxDigits: 8,
    towns: [
      town('Wien', '1010', 48.208, 16.372, '+43 1'),
      town('Graz', '8010', 47.07, 15.439, '+43 316'),
      town('Linz', '4020', 48.306, 14.286, '+43 732'),
    ],
  },
  {
    code: 'CH',
    share: 5,
    region: 'central',
    culture: 'german',
    taxPrefix: 'CHE',
    taxDigits: 9,
    towns: [
      town('Zürich', '8001', 47.377, 8.541, '+41 44', 'ZH'),
      town('Basel', '4001', 47.557, 7.589, '+41 61', 'BS'),
      town('Bern', '3011', 46.948, 7.447, '+41 31', 'BE'),
    ],
  },
  {
    code: 'FR',
    share: 11,
    region: 'west',
    culture: 'french',
    taxPrefix: 'FR',
    taxDigits: 11,
    towns: [
      town('Paris', '75002', 48.868, 2.341, '+33 1'),
      town('Lyon', '69002', 45.757, 4.832, '+33 4'),
      town('Nantes', '44000', 47.218, -1.554, '+33 2'),
      town('Lille', '59000', 50.637, 3.063, '+33 3'),
      town('Toulouse', '31000', 43.604, 1.444, '+33 5'),
    ],
  },
  {
    code: 'BE',
    share: 3,
    region: 'west',
    culture: 'french',
    taxPrefix: 'BE0',
    taxDigits: 9,
    towns: [town('Bruxelles', '1000', 50.847, 4.352, '+32 2'), town('Liège', '4000', 50.633, 5.568, '+32 4')],
  },
  {
    code: 'NL',
    share: 6,
    region: 'west',
    culture: 'dutch',
    taxPrefix: 'NL',
    taxDigits: 9,
    towns: [
      town('Amsterdam', '1012 AB', 52.373, 4.893, '+31 20'),
      town('Rotterdam', '3011 AD', 51.922, 4.479, '+31 10'),
      town('Utrecht', '3511 AE', 52.09, 5.121, '+31 30'),
    ],
  },
  {
    code: 'GB',
    share: 7,
    region: 'west',
    culture: 'english',
    taxPrefix: 'GB',
    taxDigits: 9,
    towns: [
      town('London', 'EC1A 1BB', 51.52, -0.098, '+44 20'),
      town('Manchester', 'M1 1AE', 53.477, -2.234, '+44 161'),
      town('Bristol', 'BS1 4DJ', 51.451, -2.6, '+44 117'),
      town('Edinburgh', 'EH1 1YZ', 55.953, -3.189, '+44 131'),
    ],
  },
  {
    code: 'IE',
    share: 2,
    region: 'west',
    culture: 'english',
    taxPrefix: 'IE',
    taxDigits: 7,
    towns: [town('Dublin', 'D02 X285', 53.343, -6.26, '+353 1'), town('Cork', 'T12 W8KR', 51.897, -8.47, '+353 21')],
  },
  {
    code: 'IT',
    share: 6,
    region: 'south',
    culture: 'italian',
    taxPrefix: 'IT',
    taxDigits: 11,
    towns: [
      town('Milano', '20121', 45.468, 9.19, '+39 02', 'MI'),
      town('Torino', '10121', 45.07, 7.683, '+39 011', 'TO'),
      town('Bologna', '40121', 44.498, 11.343, '+39 051', 'BO'),
    ],
  },
  {
    code: 'ES',
    share: 5,
    region: 'south',
    culture: 'spanish',
    taxPrefix: 'ESB',
    taxDigits: 8,
    towns: [
      town('Madrid', '28013', 40.418, -3.704, '+34 91', 'Madrid'),
      town('Barcelona', '08007', 41.389, 2.166, '+34 93', 'Barcelona'),
      town('Valencia', '46002', 39.47, -0.377, '+34 96', 'Valencia'),
    ],
  },
  {
    code: 'PT',
    share: 3,
    region: 'south',
    culture: 'portuguese',
    taxPrefix: 'PT',
    taxDigits: 9,
    towns: [
      town('Lisboa', '1100-053', 38.711, -9.138, '+351 21'),
      town('Porto', '4000-322', 41.147, -8.611, '+351 22'),
    ],
  },
  {
    code: 'SE',
    share: 3,
    region: 'north',
    culture: 'nordic',
    taxPrefix: 'SE',
    taxDigits: 12,
    towns: [town('Stockholm', '111 20', 59.331, 18.06, '+46 8'), town('Göteborg', '411 06', 57.709, 11.967, '+46 31')],
  },
  {
    code: 'NO',
    share: 2,
    region: 'north',
    culture: 'nordic',
    taxPrefix: 'NO',
    taxDigits: 9,
    towns: [town('Oslo', '0155', 59.911, 10.744, '+47 22'), town('Bergen', '5003', 60.393, 5.324, '+47 55')],
  },
  {
    code: 'DK',
    share: 2,
    region: 'north',
    culture: 'nordic',
    taxPrefix: 'DK',
    taxDigits: 8,
    towns: [town('København', '1050', 55.681, 12.585, '+45 33'), town('Aarhus', '8000', 56.157, 10.207, '+45 86')],
  },
  {
    code: 'PL',
    share: 3,
    region: 'central',
    culture: 'polish',
    taxPrefix: 'PL',
    taxDigits: 10,
    towns: [town('Warszawa', '00-001', 52.23, 21.012, '+48 22'), town('Wrocław', '50-069', 51.108, 17.032, '+48 71')],
  },
  {
    code: 'US',
    share: 9,
    region: 'americas',
    culture: 'american',
    taxPrefix: '',
    taxDigits: 9,
    towns: [
      town('Boston', '02108', 42.358, -71.064, '+1 617', 'MA'),
      town('Chicago', '60601', 41.885, -87.622, '+1 312', 'IL'),
      town('Denver', '80202', 39.752, -104.999, '+1 303', 'CO'),
      town('Atlanta', '30303', 33.753, -84.39, '+1 404', 'GA'),
      town('Seattle', '98101', 47.61, -122.334, '+1 206', 'WA'),
    ],
  },
  {
    code: 'CA',
    share: 2,
    region: 'americas',
    culture: 'american',
    taxPrefix: '',
    taxDigits: 9,
    towns: [
      town('Toronto', 'M5H 2N2', 43.652, -79.383, '+1 416', 'ON'),
      town('Vancouver', 'V6B 1A1', 49.28, -123.115, '+1 604', 'BC'),
    ],
  },
];
