import { walkGuides } from './guides.ts';

describe('the guide', walkGuides);
