/** Rules of schemas in words, for messages: the validator's own say "must NOT have fewer than 1 characters". */
import { patternInWords } from './pattern-words.ts';

interface BrokenRule {
  readonly keyword: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly message?: string | undefined;
}

const FORMATS: Readonly<Record<string, string>> = {
  uuid: 'a UUID',
  date: 'a day of the calendar such as 2026-11-21',
  'date-time': 'a date-time with offset such as 2026-11-21T09:30:00Z (RFC 3339)',
};

/** The end of a message: `must be at least 1`. The validator's own words for a rule that is not known here. */
export function ruleInWords({ keyword, params, message = 'is not valid' }: BrokenRule): string {
  const limit = Number(params['limit']);
  switch (keyword) {
    case 'minimum':
      return `must be at least ${limit}`;
    case 'maximum':
      return `must be at most ${limit}`;
    case 'minLength':
      return limit === 1 ? 'must not be empty' : `must have at least ${limit} characters`;
    case 'maxLength':
      return `must have at most ${limit} character${limit === 1 ? '' : 's'}`;
    case 'minItems':
      return limit === 1 ? 'must not be empty' : `must have at least ${limit} items`;
    case 'maxItems':
      return `must have at most ${limit} item${limit === 1 ? '' : 's'}`;
    case 'uniqueItems':
      return 'must not have the same item twice';
    case 'pattern':
      return mustBe(patternInWords(String(params['pattern']))) ?? message;
    case 'format':
      return mustBe(FORMATS[String(params['format'])]) ?? message;
    default:
      return message;
  }
}

const mustBe = (words: string | null | undefined): string | null => (words ? `must be ${words}` : null);
