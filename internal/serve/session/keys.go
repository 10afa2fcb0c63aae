// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	// keySize is that of AES-256, in bytes.
	keySize = 32
	// maxKeys bounds the keys that are tried for one value.
	maxKeys = 8
)

// Purpose is the use of a value. A value that was sealed for one purpose opens for no other one.
type Purpose string

// The purposes.
const (
	// Caller is the purpose of a session: the token of a user who has logged in.
	Caller Purpose = "session"
	// Flow is the purpose of a login that is under way.
	Flow Purpose = "login"
	// Logout is the purpose of a logout at the issuer that is under way.
	Logout Purpose = "logout"
)

// Keys seal values and open them. Their methods may be called from any goroutine.
type Keys struct{ ciphers atomic.Pointer[[]cipher.AEAD] }

// ParseKeys reads 1 to 8 keys: one a line, each 32 bytes in base64. No error has a part of a key.
func ParseKeys(text []byte) (*Keys, error) {
	k := &Keys{}
	if err := k.Replace(text); err != nil {
		return nil, err
	}
	return k, nil
}

// Replace puts the keys of a text in the place of all keys of before. With an error, see [ParseKeys], the keys of before stay.
func (k *Keys) Replace(text []byte) error {
	var ciphers []cipher.AEAD
	for number, line := range bytes.Split(text, []byte("\n")) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(string(line))
		if err != nil || len(key) != keySize {
			return fmt.Errorf("line %d is no key: a key has %d random bytes in base64", number+1, keySize)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return fmt.Errorf("using the key of line %d: %w", number+1, err)
		}
		sealer, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return fmt.Errorf("using the key of line %d: %w", number+1, err)
		}
		ciphers = append(ciphers, sealer)
	}
	if len(ciphers) == 0 || len(ciphers) > maxKeys {
		return fmt.Errorf("there are %d keys, and not 1 to %d", len(ciphers), maxKeys)
	}
	k.ciphers.Store(&ciphers)
	return nil
}

// envelope is the text that is sealed.
type envelope[V any] struct {
	// End is in seconds since 1970.
	End   int64 `json:"end"`
	Value V     `json:"value"`
}

var errNoValue = errors.New("it has no value")

// seal encrypts a value that ends.
func seal[V any](k *Keys, purpose Purpose, end time.Time, value V) (string, error) {
	plain, err := json.Marshal(envelope[V]{end.Unix(), value})
	if err != nil {
		return "", fmt.Errorf("encoding a session: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString((*k.ciphers.Load())[0].Seal(nil, nil, plain, []byte(purpose))), nil
}

// unseal returns a value that has not ended.
func unseal[V any](k *Keys, purpose Purpose, now time.Time, sealed string) (V, error) {
	var none V
	raw, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil {
		return none, fmt.Errorf("decoding a session: %w", err)
	}
	for _, c := range *k.ciphers.Load() {
		plain, err := c.Open(nil, nil, raw, []byte(purpose))
		if err != nil {
			continue
		}
		var e envelope[V]
		if err := json.Unmarshal(plain, &e); err != nil {
			return none, fmt.Errorf("reading a session: %w", err)
		}
		if now.Unix() >= e.End {
			return none, errNoValue
		}
		return e.Value, nil
	}
	return none, errNoValue
}
