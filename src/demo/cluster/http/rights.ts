import { isDeepStrictEqual } from 'node:util';
import { forbidden, unauthorized } from '../status.ts';

/** What somebody may do; `*` for everything. */
export interface Rule {
  readonly verbs: readonly string[];
  /** `''` is the core group. */
  readonly apiGroups: readonly string[];
  /** Plurals, with a subresource where one is meant: `pods`, `pods/log`, all with `status`: `*` + `/status`. */
  readonly resources: readonly string[];
  /** In every namespace and at the cluster scope when absent. */
  readonly namespaces?: readonly string[];
  /** Any when absent. */
  readonly resourceNames?: readonly string[];
}

export interface ClusterUser {
  /** `<name>-token` when absent. */
  readonly token?: string;
  /** Nothing when absent. */
  readonly rules?: readonly Rule[];
}

/** What is asked for. */
export interface Access {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
}

/** Who there is, by which tokens they are known, and what they may do. */
export interface Rights {
  /** The user of a request. Throws `Unauthorized`. */
  userOf(authorization: string | undefined): string;
  tokenOf(user: string): string;
  allows(user: string, access: Access): boolean;
  grant(user: string, rule: Rule): void;
  revoke(user: string, rule: Rule): void;
  setToken(user: string, token: string): void;
  expireToken(user: string): void;
}

/** Has every right, also when nobody else is named. */
export const admin = 'admin';

const everything: Rule = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] };

interface Standing {
  token: string;
  isExpired: boolean;
  /** The newest one that fits decides. */
  decisions: readonly { readonly rule: Rule; readonly isAllowed: boolean }[];
}

/** Without users everybody is `admin`. */
export function createRights(users: Readonly<Record<string, ClusterUser>> | undefined): Rights {
  const standings = new Map<string, Standing>();
  for (const [name, user] of Object.entries<ClusterUser>({ [admin]: { rules: [everything] }, ...users })) {
    standings.set(name, {
      token: user.token ?? `${name}-token`,
      isExpired: false,
      decisions: (user.rules ?? []).map(rule => ({ rule, isAllowed: true })),
    });
  }

  function standingOf(user: string): Standing {
    const found = standings.get(user);
    if (!found)
      throw new Error(`no user "${user}" in the emulated cluster; it has ${[...standings.keys()].join(', ')}`);
    return found;
  }

  function decide(user: string, rule: Rule, isAllowed: boolean) {
    const standing = standingOf(user);
    const others = standing.decisions.filter(each => !isDeepStrictEqual(each.rule, rule));
    standing.decisions = [{ rule, isAllowed }, ...others];
  }

  return {
    userOf(authorization) {
      if (!users) return admin;
      const [, token] = /^Bearer (.+)$/i.exec(authorization ?? '') ?? [];
      for (const [name, standing] of standings) if (standing.token === token && !standing.isExpired) return name;
      throw unauthorized();
    },
    tokenOf: user => standingOf(user).token,
    allows: (user, access) => standingOf(user).decisions.find(({ rule }) => fits(rule, access))?.isAllowed ?? false,
    grant: (user, rule) => decide(user, rule, true),
    revoke: (user, rule) => decide(user, rule, false),
    setToken(user, token) {
      Object.assign(standingOf(user), { token, isExpired: false });
    },
    expireToken(user) {
      standingOf(user).isExpired = true;
    },
  };
}

function fits(rule: Rule, { verb, group, resource, subresource, namespace, name }: Access): boolean {
  const has = (list: readonly string[], value: string) => list.includes('*') || list.includes(value);
  const full = subresource ? `${resource}/${subresource}` : resource;
  return (
    has(rule.verbs, verb) &&
    has(rule.apiGroups, group) &&
    (has(rule.resources, full) || (subresource !== '' && rule.resources.includes(`*/${subresource}`))) &&
    (!rule.namespaces || rule.namespaces.includes(namespace)) &&
    (!rule.resourceNames || rule.resourceNames.includes(name))
  );
}

/** Throws `Forbidden`. */
export function checkAccess(rights: Rights, user: string, access: Access): void {
  if (rights.allows(user, access)) return;
  const { verb, group, resource, subresource, namespace, name } = access;
  const full = subresource ? `${resource}/${subresource}` : resource;
  const where = namespace ? `in the namespace "${namespace}"` : 'at the cluster scope';
  const why = `User "${user}" cannot ${verb} resource "${full}" in API group "${group}" ${where}`;
  throw forbidden(resource, group, name, why);
}
