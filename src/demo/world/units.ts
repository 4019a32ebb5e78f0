export const GB = 1_000_000_000;
export const MB = 1_000_000;
export const KB = 1_000;
