/** What was refused because it was too much, as metrics name it. */
export const refusalReasons = [
  'tokens',
  'depth',
  'aliases',
  'root_fields',
  'fields',
  'rows',
  'body',
  'headers',
  'request_timeout',
  'sockets',
  'sockets_per_caller',
  'operations',
  'message',
  'init_timeout',
  'mutations',
] as const;

export type RefusalReason = (typeof refusalReasons)[number];

export type OnRefused = (reason: RefusalReason) => void;
