/** Changes of records for events: the internal action `data.events.read`. */
import type { Asker } from '../../lib/context.ts';

export interface EventRecordsQuestion {
  readonly asker: Asker;
  /** With the values before and after. */
  readonly full: boolean;
  /** In the order of the events. */
  readonly records: readonly {
    /** Place of the event in the question's list of events. */
    readonly place: number;
    readonly objectApiName: string;
    readonly id: string;
    readonly version: number;
    /** A deletion leaves the version as the change before it. */
    readonly deleted: boolean;
    /** Of the change, milliseconds since 1970. */
    readonly at: number;
  }[];
}

export interface EventChange {
  readonly place: number;
  readonly etag: string;
  /** Those that the asker can read. */
  readonly changedFields: readonly string[];
  /** JSON of the values of these fields; null: not asked for, or there are none on this side of the change. */
  readonly before: string | null;
  readonly after: string | null;
  /** The asker can read the state. */
  readonly showsTransition: boolean;
}

export interface EventRecords {
  readonly systemPermissions: readonly string[];
  /** The tenant's configuration has the client of the asker, and it is not disabled. */
  readonly clientUsable: boolean;
  /** Of the records that the asker can read, or could when they were deleted. */
  readonly changes: readonly EventChange[];
  /** Place of the first event that the answer has no room for; null: there is none. */
  readonly cutAt: number | null;
}
