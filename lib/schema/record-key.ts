/** One text for a record of whatever object, for sets and maps. */
export const recordKey = ({ objectApiName, id }: { readonly objectApiName: string; readonly id: string }): string =>
  `${objectApiName} ${id}`;
