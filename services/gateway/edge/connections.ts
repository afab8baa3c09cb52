/**
 * Bounds the connections that a gateway holds, so that no network shuts others out by opening many: so many of one network,
 * and when all are taken, the network that holds most gives up its oldest.
 */
import type { Socket } from 'node:net';
import { LIMITS } from '../../../lib/limits.ts';
import { networkOf } from '../../../lib/values/network.ts';

interface ConnectionLimits {
  /** Connections of one network. */
  readonly ofNetwork: number;
  readonly all: number;
}

export class Connections {
  readonly #limits: ConnectionLimits;
  readonly #networks = new Map<string, Set<Socket>>();
  #open = 0;

  constructor(
    limits: ConnectionLimits = { ofNetwork: LIMITS.connections_of_network_max, all: LIMITS.connections_max },
  ) {
    this.#limits = limits;
  }

  get open(): number {
    return this.#open;
  }

  /** Takes a new connection of the address, or closes it before anything is read from it. */
  add(socket: Socket, address: string): void {
    const network = networkOf(address);
    const own = this.#networks.get(network);
    const count = own?.size ?? 0;
    if (count >= this.#limits.ofNetwork || (this.#open >= this.#limits.all && !this.#makeRoom(count))) {
      socket.destroy();
      return;
    }
    const sockets = own ?? new Set();
    sockets.add(socket);
    this.#networks.set(network, sockets);
    this.#open++;
    socket.once('close', () => this.#remove(network, socket));
  }

  #remove(network: string, socket: Socket): void {
    const sockets = this.#networks.get(network);
    if (!sockets?.delete(socket)) return;
    this.#open--;
    if (sockets.size === 0) this.#networks.delete(network);
  }

  /** Closes the oldest connection of the network that holds most, if that is more than `count`. */
  #makeRoom(count: number): boolean {
    let most: [network: string, sockets: Set<Socket>] | undefined;
    for (const entry of this.#networks) if (entry[1].size > (most?.[1].size ?? count)) most = entry;
    if (!most) return false;
    const [network, sockets] = most;
    for (const oldest of sockets) {
      this.#remove(network, oldest);
      oldest.destroy();
      break;
    }
    return true;
  }
}
