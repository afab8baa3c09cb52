/** Whether this machine can do what is asked of it. */
import { availableParallelism, loadavg } from 'node:os';

/** Threads that wait for each processor; with more, everything is late because of that. */
const LOAD_MAX = 3;

/** It has several times more to do than it can: what is late then says nothing about the platform. */
export const isOverloaded = (): boolean => loadavg()[0]! > LOAD_MAX * availableParallelism();
