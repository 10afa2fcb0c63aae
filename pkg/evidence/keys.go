// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Signer signs records. It must be deterministic for a retry to give the same
// bytes, as Ed25519 is.
type Signer interface {
	// KeyID names the public key; see [KeyID].
	KeyID() string
	Sign(message []byte) ([]byte, error)
}

// PrivateKey is an Ed25519 key that signs. Printed, it shows its id alone.
type PrivateKey struct {
	key ed25519.PrivateKey
	id  string
}

var _ Signer = (*PrivateKey)(nil)

// PEM types of the two halves.
const (
	pemPrivate = "PRIVATE KEY"
	pemPublic  = "PUBLIC KEY"
)

// PublicPEM is a public key as ParseKeyring reads it.
func PublicPEM(key ed25519.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemPublic, Bytes: der}), nil
}

// GenerateKey makes a key and gives it as PEM: the private half in PKCS#8, the
// public half as SubjectPublicKeyInfo.
func GenerateKey() (private, public []byte, err error) {
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generating evidence key: %w", err)
	}
	privateDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding evidence key: %w", err)
	}
	publicDER, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding evidence key: %w", err)
	}
	private = pem.EncodeToMemory(&pem.Block{Type: pemPrivate, Bytes: privateDER})
	public = pem.EncodeToMemory(&pem.Block{Type: pemPublic, Bytes: publicDER})
	return private, public, nil
}

// ParsePrivateKey reads one Ed25519 key in PKCS#8 from PEM. No error shows any
// of it.
func ParsePrivateKey(data []byte) (*PrivateKey, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != pemPrivate {
		return nil, fmt.Errorf("parsing evidence key: no PEM block %q", pemPrivate)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("parsing evidence key: no PKCS#8 key in the PEM block")
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("parsing evidence key: is of type %T, want Ed25519", parsed)
	}
	id, err := KeyID(key.Public().(ed25519.PublicKey))
	if err != nil {
		return nil, err
	}
	return &PrivateKey{key: key, id: id}, nil
}

// KeyID names the public half.
func (k *PrivateKey) KeyID() string { return k.id }

// Sign with plain Ed25519 (RFC 8032, without a prehash).
func (k *PrivateKey) Sign(message []byte) ([]byte, error) {
	return ed25519.Sign(k.key, message), nil
}

// Public half, to be added to a keyring.
func (k *PrivateKey) Public() ed25519.PublicKey { return k.key.Public().(ed25519.PublicKey) }

// DeriveKey returns a secret of 32 bytes for one purpose, by HKDF. The secret tells neither
// the key nor the secret of another purpose.
func (k *PrivateKey) DeriveKey(purpose string) ([]byte, error) {
	secret, err := hkdf.Key(sha256.New, k.key.Seed(), nil, purpose, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("deriving a key from the evidence key: %w", err)
	}
	return secret, nil
}

// String is the id; the key is never printed.
func (k *PrivateKey) String() string { return "evidence key " + k.id }

// GoString is the id too.
func (k *PrivateKey) GoString() string { return k.String() }

// KeyID is the SHA-256 of the key's SubjectPublicKeyInfo in hex.
func KeyID(key ed25519.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", fmt.Errorf("naming evidence key: %w", err)
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:]), nil
}

// Keyring holds the public keys that are believed: the present one and, after a
// rotation, those before it.
type Keyring struct {
	keys map[string]ed25519.PublicKey
}

// NewKeyring of keys.
func NewKeyring(keys ...ed25519.PublicKey) (*Keyring, error) {
	ring := &Keyring{keys: map[string]ed25519.PublicKey{}}
	for _, key := range keys {
		id, err := KeyID(key)
		if err != nil {
			return nil, err
		}
		ring.keys[id] = key
	}
	return ring, nil
}

// ParseKeyring reads all public keys from PEM, any number in each of the files.
// A file without a key is an error: verifying with fewer keys than meant would
// report good records as unknown.
func ParseKeyring(files ...[]byte) (*Keyring, error) {
	var keys []ed25519.PublicKey
	for i, data := range files {
		found := 0
		for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
			key, err := parsePublic(block)
			if err != nil {
				return nil, fmt.Errorf("parsing evidence keys, file %d: %w", i+1, err)
			}
			keys = append(keys, key)
			found++
		}
		if found == 0 {
			return nil, fmt.Errorf("parsing evidence keys, file %d: no PEM block %q", i+1, pemPublic)
		}
	}
	return NewKeyring(keys...)
}

// ParseOldKeys reads keys of before from PEM, any number of public and of private ones. The
// public half of a private key is among the public ones.
func ParseOldKeys(data []byte) (public []ed25519.PublicKey, private []*PrivateKey, err error) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == pemPrivate {
			key, err := ParsePrivateKey(pem.EncodeToMemory(block))
			if err != nil {
				return nil, nil, err
			}
			public, private = append(public, key.Public()), append(private, key)
			continue
		}
		key, err := parsePublic(block)
		if err != nil {
			return nil, nil, fmt.Errorf("parsing evidence keys: %w", err)
		}
		public = append(public, key)
	}
	if len(public) == 0 {
		return nil, nil, fmt.Errorf("parsing evidence keys: no PEM block %q or %q", pemPublic, pemPrivate)
	}
	return public, private, nil
}

func parsePublic(block *pem.Block) (ed25519.PublicKey, error) {
	if block.Type != pemPublic {
		return nil, fmt.Errorf("PEM block %.40q, want %q", block.Type, pemPublic)
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("no public key in the PEM block: %w", err)
	}
	key, ok := parsed.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("is of type %T, want Ed25519", parsed)
	}
	return key, nil
}

// IDs of the keys in order.
func (k *Keyring) IDs() []string {
	if k == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(k.keys))
}

// verify gives the id of a known key that signed the envelope. One is enough:
// others may be there for somebody else.
func (k *Keyring) verify(e envelope) (string, error) {
	message := preAuth(e.PayloadType, e.Payload)
	known := false
	for _, s := range e.Signatures {
		key, ok := k.key(s.KeyID)
		if !ok {
			continue
		}
		known = true
		if ed25519.Verify(key, message, s.Sig) {
			return s.KeyID, nil
		}
	}
	if known {
		return "", envelopeError(FaultBadSignature, errors.New("the key that is named did not sign this"))
	}
	return "", envelopeError(FaultUnknownKey, fmt.Errorf("signed by %s", signers(e)))
}

func (k *Keyring) key(id string) (ed25519.PublicKey, bool) {
	if k == nil {
		return nil, false
	}
	key, ok := k.keys[id]
	return key, ok
}

func signers(e envelope) string {
	if len(e.Signatures) == 0 {
		return "nobody"
	}
	return fmt.Sprintf("key %.64q", e.Signatures[0].KeyID)
}
