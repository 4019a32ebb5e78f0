import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

/** What an HTTPS server on loopback shows, and what its clients trust. All in PEM. */
export interface Certificates {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** A certificate authority of its own for each server, and a certificate for `127.0.0.1` and `localhost`. */
export function issueCertificates(): Certificates {
  const authority = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const server = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const issuer = commonName('emulated-ca');
  const keyId = randomBytes(20);
  const ca = certificate(authority.privateKey, issuer, issuer, authority.publicKey, [
    extension('2.5.29.19', sequence(boolean(true)), true), // basicConstraints: an authority
    extension('2.5.29.15', bits(0x06, 1), true), // keyUsage: certificates and revocations
    extension('2.5.29.14', tagged(0x04, keyId)), // subjectKeyIdentifier
  ]);
  const cert = certificate(authority.privateKey, issuer, commonName('kube-apiserver'), server.publicKey, [
    extension('2.5.29.15', bits(0x80, 7), true), // keyUsage: signatures
    extension('2.5.29.37', sequence(identifier('1.3.6.1.5.5.7.3.1'))), // extKeyUsage: servers
    extension(
      '2.5.29.17', // subjectAltName
      sequence(tagged(0x82, Buffer.from('localhost')), tagged(0x87, Buffer.from([127, 0, 0, 1]))),
    ),
    extension('2.5.29.35', sequence(tagged(0x80, keyId))), // authorityKeyIdentifier
  ]);
  return { ca, cert, key: server.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
}

const ecdsaWithSha256 = () => sequence(identifier('1.2.840.10045.4.3.2'));
const dayMs = 24 * 60 * 60 * 1000;

/** X.509, version 3, from yesterday for ten years. */
function certificate(
  signer: KeyObject,
  issuer: Buffer,
  subject: Buffer,
  publicKey: KeyObject,
  extensions: readonly Buffer[],
): string {
  // Positive, so that it needs no leading zero.
  const serial = Buffer.concat([Buffer.from([1]), randomBytes(15)]);
  const validity = sequence(time(Date.now() - dayMs), time(Date.now() + 3650 * dayMs));
  const body = sequence(
    tagged(0xa0, tagged(0x02, Buffer.from([2]))),
    tagged(0x02, serial),
    ecdsaWithSha256(),
    issuer,
    validity,
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
    tagged(0xa3, sequence(...extensions)),
  );
  const whole = sequence(body, ecdsaWithSha256(), bitString(sign('sha256', body, signer)));
  const lines = whole.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

const commonName = (name: string) =>
  sequence(tagged(0x31, sequence(identifier('2.5.4.3'), tagged(0x0c, Buffer.from(name)))));

const extension = (id: string, value: Buffer, isCritical = false) =>
  sequence(identifier(id), ...(isCritical ? [boolean(true)] : []), tagged(0x04, value));

/** A value in DER: its tag, its length, itself. */
function tagged(tag: number, value: Buffer): Buffer {
  const { byteLength } = value;
  const length =
    byteLength < 0x80
      ? [byteLength]
      : byteLength < 0x100
        ? [0x81, byteLength]
        : [0x82, byteLength >> 8, byteLength & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), value]);
}

const sequence = (...parts: readonly Buffer[]) => tagged(0x30, Buffer.concat(parts));
const boolean = (value: boolean) => tagged(0x01, Buffer.from([value ? 0xff : 0]));
const bitString = (value: Buffer) => tagged(0x03, Buffer.concat([Buffer.from([0]), value]));
/** One byte of named bits, the last ones of them unused. */
const bits = (byte: number, unused: number) => tagged(0x03, Buffer.from([unused, byte]));

/** As `260822080000Z`, which is read until 2049. */
const time = (ms: number) =>
  tagged(0x17, Buffer.from(`${new Date(ms).toISOString().replace(/\D/g, '').slice(2, 14)}Z`));

/** `1.2.840.10045`: the first two numbers in one byte, the others in sevens of bits. */
function identifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...others] = dotted.split('.').map(Number);
  return tagged(0x06, Buffer.from([40 * first + second, ...others.flatMap(sevens)]));
}

function sevens(value: number): number[] {
  const rest = Math.floor(value / 0x80);
  const last = value % 0x80;
  return rest === 0 ? [last] : [...sevens(rest).map(byte => byte | 0x80), last];
}
