import { tool } from '../support/tools.ts';
import { walkGuides } from './guides.ts';

describe('the guide', () => walkGuides({ packages: tool(), again: false }));
