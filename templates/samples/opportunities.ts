/** Sample opportunities. */
import type { Account } from './accounts.ts';
import { DAY, decimal, isoDate, isoTime, later, money, workingMoment } from './values.ts';
import type { Workbook } from './workbook.ts';

/** Ids of won deals by account, for the orders that came of them. */
export function makeOpportunities(
  book: Workbook,
  accounts: readonly Account[],
): Map<string, { id: string; closedAt: number }> {
  const random = book.choices('Opportunity');
  const rows = book.sheet('Opportunity__c');
  const won = new Map<string, { id: string; closedAt: number }>();
  const candidates = accounts.filter((a) => a.row['type'] === 'customer' || a.row['type'] === 'prospect');
  for (let i = 0; i < book.size.opportunities; i++) {
    const account = random.one(candidates);
    const prospect = account.row['type'] === 'prospect';
    const stage = random.weighted(prospect ? STAGES.slice(0, 4) : STAGES);
    const closed = stage === 'closedWon' || stage === 'closedLost';
    const earliest = Math.ceil((account.createdAt - book.end) / DAY);
    const opened = closed ? random.integer(-700, -40) : random.integer(-150, -2);
    const createdAt = workingMoment(random, book.end + Math.max(opened, earliest) * DAY);
    const closeAt = closed
      ? Math.min(createdAt + random.integer(10, 120) * DAY, book.end - DAY)
      : // Some have waited for longer than they should.
        Math.max(createdAt + DAY, book.end + random.integer(-12, 150) * DAY);
    const row = book.add(
      rows,
      'Opportunity__c',
      account.owner,
      createdAt,
      closed ? closeAt : book.end - random.integer(1, 20) * DAY,
      {
        name: `${account.row['name']} – ${random.one(PROJECTS)}`,
        AccountId__c: account.row.id,
        ContactId__c: account.contacts.length ? random.one(account.contacts) : null,
        Stage__c: stage,
        LossReason__c:
          stage === 'closedLost' ? random.one(['price', 'competitor', 'timing', 'budget', 'noDecision']) : null,
        CurrencyIsoCode__c: account.currency,
        Amount__c: money(random.integer(8, 900) * 250_00),
        Probability__c: decimal(PROBABILITY[stage] * 100, 100, 2),
        CloseDate__c: isoDate(closeAt),
        ForecastCategory__c: closed
          ? stage === 'closedWon'
            ? 'closed'
            : 'omitted'
          : stage === 'negotiation'
            ? 'commit'
            : stage === 'proposal'
              ? 'bestCase'
              : 'pipeline',
        LeadSource__c: prospect
          ? random.one(['referral', 'website', 'tradeFair', 'coldCall', 'partner'])
          : random.one(['existingCustomer', 'existingCustomer', 'referral', 'website', 'tradeFair']),
        Competitor__c: random.chance(0.35) ? random.one(COMPETITORS) : null,
        NextStep__c: closed ? null : random.one(NEXT_STEPS),
        LastContactAt__c: isoTime(closed ? closeAt : later(random, createdAt, book.end)),
        Description__c: random.chance(0.3) ? random.one(OPPORTUNITY_REMARKS) : null,
      },
    );
    if (stage === 'closedWon') won.set(account.row.id, { id: row.id, closedAt: closeAt });
  }
  return won;
}

const STAGES = [
  ['qualification', 16],
  ['needsAnalysis', 14],
  ['proposal', 16],
  ['negotiation', 9],
  ['closedWon', 28],
  ['closedLost', 17],
] as const;

const PROBABILITY = {
  qualification: 10,
  needsAnalysis: 25,
  proposal: 50,
  negotiation: 75,
  closedWon: 100,
  closedLost: 0,
} as const;

const PROJECTS = [
  'new headquarters',
  'office refit third floor',
  'meeting rooms',
  'sit-stand desks',
  'framework contract supplies',
  'LED lighting',
  'branch opening',
  'home office programme',
  'reception area',
  'training centre',
];

const COMPETITORS = ['Bürowelt Nord', 'Officeline Europe', 'Deskworks Inc.', 'Mobilia Contract', 'Local dealer'];

const NEXT_STEPS = [
  'Send revised quote',
  'Visit with interior designer',
  'Call the head of purchasing',
  'Deliver sample chair',
  'Wait for board decision',
  'Agree on payment terms',
];

const OPPORTUNITY_REMARKS = [
  'Budget confirmed for this fiscal year.',
  'Tender with three bidders.',
  'Landlord pays part of the lighting.',
];
