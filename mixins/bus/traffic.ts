/** Traffic between a process and NATS since the start of the process. */
export interface BusTraffic {
  readonly sent: Carried;
  readonly received: Carried;
}

interface Carried {
  readonly messages: number;
  readonly bytes: number;
}

const NOTHING: Carried = { messages: 0, bytes: 0 };

export const NO_TRAFFIC: BusTraffic = { sent: NOTHING, received: NOTHING };
