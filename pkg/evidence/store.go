// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"strings"
)

// Store keeps envelopes, and the bodies that they name, by name. What is in it is not trusted: everything that
// is read is verified, and how far a chain goes is kept elsewhere.
type Store interface {
	// Create writes the whole of data durably, or nothing. It is an error that
	// is [ErrExists] if the name is taken, by whatever content. After any other
	// error the data may or may not be there.
	Create(ctx context.Context, name string, data []byte) error
	// Read gives at most one byte more than [MaxSize] of the name, so that an overlong
	// object is seen as such. It is an error that is [ErrNotFound] if there is no such name.
	Read(ctx context.Context, name string) ([]byte, error)
	// List yields the names in a chain in byte order, or with an empty chain
	// all names, those of one chain together. It ends at the first error.
	List(ctx context.Context, chain string) iter.Seq2[string, error]
	// Ready says whether a record could be written now. It writes to find out.
	Ready(ctx context.Context) error
}

// OwnedStore is a Store that its owner closes.
type OwnedStore interface {
	Store
	// Close refuses further calls and gives back what the store holds. It waits until calls
	// under way have ended or the context ends, those that their callers have given up included.
	Close(ctx context.Context) error
}

// What a store answers apart from failing.
var (
	// ErrExists: the name is taken.
	ErrExists = errors.New("the name is taken")
	// ErrNotFound: there is no such name.
	ErrNotFound = errors.New("no such record")
)

// StoreReason says why a store failed, as far as somebody can act on it.
type StoreReason string

// The reasons of a store.
const (
	// StoreFull: no room, or a quota is used up.
	StoreFull StoreReason = "Full"
	// StoreReadOnly: mounted or set to be read only.
	StoreReadOnly StoreReason = "ReadOnly"
	// StoreDenied: the credentials or the modes do not allow it.
	StoreDenied StoreReason = "Denied"
	// StoreUnreachable: no answer, or the bucket or directory is not there.
	StoreUnreachable StoreReason = "Unreachable"
	// StoreUnsupported: it cannot create a name only if it is free.
	StoreUnsupported StoreReason = "Unsupported"
	// StoreFailed: anything else.
	StoreFailed StoreReason = "Failed"
)

// StoreError is a store's failure. Whether a write took place is not known.
type StoreError struct {
	Op     string // "create", "read", "list", "probe", "close"
	Name   string
	Reason StoreReason
	Err    error
}

func (e *StoreError) Error() string {
	return fmt.Sprintf("evidence store: %s %s: %s: %v", e.Op, e.Name, e.Reason, e.Err)
}

// Unwrap gives the cause.
func (e *StoreError) Unwrap() error { return e.Err }

const (
	nameDigits = 19 // of the largest sequence, so that byte order is the order of the chain
	nameSuffix = ".json"
)

var namePattern = regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)/([0-9]{19})\.json$`)

// Name is where the record of a sequence stands: nothing but its number decides,
// so that of two writers who both mean to append only one can.
func Name(chain string, sequence int64) string {
	return fmt.Sprintf("%s/%0*d%s", chain, nameDigits, sequence, nameSuffix)
}

// ParseName reverses Name; false for what it never gives.
func ParseName(name string) (chain string, sequence int64, ok bool) {
	m := namePattern.FindStringSubmatch(name)
	if m == nil || len(m[1]) > maxUID {
		return "", 0, false
	}
	sequence, err := strconv.ParseInt(m[2], 10, 64)
	if err != nil || sequence < 1 {
		return "", 0, false
	}
	return m[1], sequence, true
}

// chainOf is the first part of any name.
func chainOf(name string) string {
	chain, _, _ := strings.Cut(name, "/")
	return chain
}
