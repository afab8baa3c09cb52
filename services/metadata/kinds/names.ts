/** Forms of names that several kinds share. */

/** What a tenant defines ends in `__c`; what the platform ships does not. */
export const isCustom = (name: string): boolean => name.endsWith('__c');

/** Format of an autoNumber: one run of zeros in braces is where the number goes. */
export const AUTO_NUMBER_FORMAT = '^[^{}]{0,30}\\{0{1,15}\\}[^{}]{0,30}$';
