/** Forms of names that several kinds share. */

/** Names that a tenant defines end in `__c`; shipped ones do not. */
export const isCustom = (name: string): boolean => name.endsWith('__c');

/** Format of an autoNumber: one run of zeros in braces is where the number goes. */
export const AUTO_NUMBER_FORMAT = '^[^{}]{0,30}\\{0{1,15}\\}[^{}]{0,30}$';
