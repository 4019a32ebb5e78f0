/**
 * Addresses as people write them: how agents dial a server, and what its machine is called.
 */

/** The address agents are given: the agent host, or the endpoint when that is blank, with `path` once at its end. */
export function agentAddressOf(agentHost: string | undefined, endpoint: string, path = ''): string {
  const address = agentHost?.trim().replace(/\/+$/, '') || endpoint;
  return address.endsWith(path) ? address : address + path;
}

/** The host of an address, without scheme, port, path and brackets; the text itself when it is no address. */
export function hostNameOf(address: string): string {
  const text = address.trim();
  const url = text.includes('://') ? text : `http://${text}`;
  return (URL.canParse(url) && new URL(url).hostname.replace(/^\[|\]$/g, '')) || text;
}
