// SPDX-License-Identifier: Apache-2.0

package canon

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strings"
)

// Bounds of a closure.
const (
	// MaxConfigMaps is the most ConfigMaps, by name, that a template may refer
	// to.
	MaxConfigMaps = 256
	// MaxConfigMapBytes bounds the keys and values of one ConfigMap, together.
	// The API server's own bound is 1 MiB of values.
	MaxConfigMapBytes = 4 << 20
	// MinClosureKeyBytes is the shortest secret of a [ClosureKey].
	MinClosureKeyBytes = 32
)

// ErrClosureTooLarge is wrapped by the error of a closure that is out of its
// bounds.
var ErrClosureTooLarge = errors.New("closure too large")

// UnknownConfigMapError says that a ConfigMap that the template refers to was
// not read, so that there is no digest: what is unknown is neither the same as
// before nor different.
type UnknownConfigMapError struct{ Name string }

// Error names the ConfigMap.
func (e *UnknownConfigMapError) Error() string {
	return fmt.Sprintf("ConfigMap %q is unknown", e.Name)
}

// ConfigMapState is the result of a read.
type ConfigMapState uint8

// The states. Unknown is the zero value: who forgets to say has not read.
const (
	// ConfigMapUnknown: the read failed, was refused, or did not happen.
	ConfigMapUnknown ConfigMapState = iota
	// ConfigMapAbsent: the API server says that there is none.
	ConfigMapAbsent
	// ConfigMapPresent: Data and BinaryData are its content.
	ConfigMapPresent
)

// ConfigMap is what was read of one: its state and, when it is present, all of
// its content. BinaryData is decoded.
type ConfigMap struct {
	State      ConfigMapState
	Data       map[string]string
	BinaryData map[string][]byte
}

// ClosureKey keys closure digests, so that nobody without it can guess the
// content of ConfigMaps from them. The zero ClosureKey is not usable.
type ClosureKey struct {
	secret []byte
	id     string
}

// closureKeyLabel is the message whose code under the key names the key. No
// closure has this message: those begin with eight bytes of length.
const closureKeyLabel = "plumbline closure key"

// NewClosureKey copies a secret of at least [MinClosureKeyBytes] random bytes.
func NewClosureKey(secret []byte) (ClosureKey, error) {
	if len(secret) < MinClosureKeyBytes {
		return ClosureKey{}, fmt.Errorf("making a closure key: secret has %d bytes, want at least %d", len(secret), MinClosureKeyBytes)
	}
	key := ClosureKey{secret: slices.Clone(secret)}
	mac := hmac.New(sha256.New, key.secret)
	mac.Write([]byte(closureKeyLabel))
	key.id = hex.EncodeToString(mac.Sum(nil)[:keyIDDigits/2])
	return key, nil
}

// String is the key's id, never the secret.
func (k ClosureKey) String() string { return "closure key " + k.id }

// GoString is String, for %#v.
func (k ClosureKey) GoString() string { return k.String() }

// ClosureDigest is a digest of all that decides what a workload's pods run:
// "pl1c:hmac-sha256:<16 hex digits of the key's id>:<64 hex digits>", all
// lowercase. Compare as [Compare] does: digests of two keys say nothing about
// each other.
type ClosureDigest string

const (
	prefixClosure = "pl1c:hmac-sha256:"
	keyIDDigits   = 16
)

// ParseClosureDigest checks that s is written as a closure digest and returns
// it.
func ParseClosureDigest(s string) (ClosureDigest, error) {
	rest, hasPrefix := strings.CutPrefix(s, prefixClosure)
	id, digest, hasDigest := strings.Cut(rest, ":")
	if !hasPrefix || !hasDigest || !isHex(id, keyIDDigits) || !isHex(digest, hexDigits) {
		return "", fmt.Errorf("parsing closure digest %.120q: want %q, %d hex digits, a colon, and %d hex digits",
			s, prefixClosure, keyIDDigits, hexDigits)
	}
	return ClosureDigest(s), nil
}

func isHex(s string, digits int) bool {
	return len(s) == digits && strings.Trim(s, hexLower) == ""
}

// Closure digests the pod template and the ConfigMaps it refers to (those of
// [Document.ConfigMapReferences]), without what the excluded paths cover:
// neither that part of the template, nor ConfigMaps that only it refers to.
// ConfigMaps that are not referred to do not count. Secrets are never part of
// it, only the names that the template calls them by.
//
// The error wraps [ErrNoPodTemplate], [ErrClosureTooLarge], or an
// [*UnknownConfigMapError] for the first ConfigMap, by name, that is not given
// or not known.
func (d *Document) Closure(key ClosureKey, configMaps map[string]ConfigMap, exclude ...Path) (ClosureDigest, error) {
	if key.id == "" {
		return "", errors.New("computing closure digest: no key")
	}
	template, err := d.podTemplate(exclude)
	if err != nil {
		return "", fmt.Errorf("computing closure digest: %w", err)
	}
	references, err := configMapReferences(template)
	if err != nil {
		return "", fmt.Errorf("computing closure digest: %w", err)
	}
	w := closureWriter{mac: hmac.New(sha256.New, key.secret)}
	w.part(template.AppendCanonical(nil))
	w.number(len(references))
	for _, reference := range references {
		if err := w.configMap(reference.Name, configMaps[reference.Name]); err != nil {
			return "", fmt.Errorf("computing closure digest: %w", err)
		}
	}
	return ClosureDigest(prefixClosure + key.id + ":" + hex.EncodeToString(w.mac.Sum(nil))), nil
}

// closureWriter frames the parts: each length and count goes before what it
// counts, so that no two closures have the same bytes.
type closureWriter struct {
	mac   hash.Hash
	frame [8]byte
}

func (w *closureWriter) number(n int) {
	binary.BigEndian.PutUint64(w.frame[:], uint64(n))
	w.mac.Write(w.frame[:]) // never fails, by the contract of hash.Hash
}

func (w *closureWriter) part(content []byte) {
	w.number(len(content))
	w.mac.Write(content)
}

// The bytes that stand for a state. There is none for unknown.
const (
	closureAbsent  = 0
	closurePresent = 1
)

func (w *closureWriter) configMap(name string, m ConfigMap) error {
	w.part([]byte(name))
	switch m.State {
	case ConfigMapAbsent:
		w.mac.Write([]byte{closureAbsent})
		return nil
	case ConfigMapPresent:
		w.mac.Write([]byte{closurePresent})
		if m.size() > MaxConfigMapBytes {
			return fmt.Errorf("%w: ConfigMap %q has more than %d bytes", ErrClosureTooLarge, name, MaxConfigMapBytes)
		}
		writeEntries(w, m.Data)
		writeEntries(w, m.BinaryData)
		return nil
	case ConfigMapUnknown:
	}
	return &UnknownConfigMapError{Name: name}
}

func writeEntries[V string | []byte](w *closureWriter, entries map[string]V) {
	w.number(len(entries))
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		w.part([]byte(key))
		w.part([]byte(entries[key]))
	}
}

func (m *ConfigMap) size() int {
	size := 0
	for key, value := range m.Data {
		size += len(key) + len(value)
	}
	for key, value := range m.BinaryData {
		size += len(key) + len(value)
	}
	return size
}
