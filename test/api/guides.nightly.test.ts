import { tool } from '../support/tools.ts';
import { walkGuides } from './guides.ts';

describe('the guide, and once more', () => walkGuides({ packages: tool(), again: true }));
