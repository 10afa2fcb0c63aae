// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// keysPause is how long nobody reads the keys again, whoever asks.
	keysPause = 10 * time.Second
	// keysLife is after which time they are read again without a need, so that one
	// that was taken back is not believed for ever.
	keysLife = 5 * time.Minute
	// patience bounds each question to the API server.
	patience = 5 * time.Second
)

// keyring holds the keys of the last answer.
type keyring struct {
	api API
	now func() time.Time

	mu      sync.Mutex
	set     *keyset       // nil before the first answer
	read    time.Time     // when there was an answer
	tried   time.Time     // when one was asked for
	reading chan struct{} // closed at the end of a read under way; nil when there is none
	err     error         // of the last read
}

// find returns the keys if one has that name, else nil. One that is unknown is waited for, if it may be in
// an answer that is due.
func (k *keyring) find(ctx context.Context, name string) *keyset {
	set, pending := k.look(ctx, name)
	if pending != nil {
		select {
		case <-pending:
		case <-ctx.Done():
		}
		set, _ = k.look(ctx, name)
	}
	return set
}

// look is find without waiting; pending is what is worth waiting for.
func (k *keyring) look(ctx context.Context, name string) (set *keyset, pending <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.set.has(name) {
		return nil, k.refresh(ctx)
	}
	if k.now().Sub(k.read) >= keysLife {
		k.refresh(ctx)
	}
	return k.set, nil
}

// refresh reads the keys again, unless that was tried a moment ago. It returns what
// ends with the read under way; nil when there is none. The caller holds mu.
func (k *keyring) refresh(ctx context.Context) <-chan struct{} {
	if now := k.now(); k.reading == nil && (k.tried.IsZero() || now.Sub(k.tried) >= keysPause) {
		k.tried, k.reading = now, make(chan struct{})
		// It is for everybody, so it does not end with who happened to be the first.
		go k.fetch(context.WithoutCancel(ctx), k.reading)
	}
	return k.reading
}

func (k *keyring) fetch(ctx context.Context, done chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	issuer, keys, err := k.api.Keys(ctx)
	usable := usableKeys(keys)
	if err == nil && len(usable) == 0 {
		err = errors.New("the API server names no usable key")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err = err; err == nil {
		k.set, k.read = newKeyset(issuer, usable), k.now()
	}
	k.reading = nil
	close(done)
}

// usableKeys are those that a signature can be checked with, by name.
func usableKeys(keys []jose.JSONWebKey) map[string]jose.JSONWebKey {
	usable := make(map[string]jose.JSONWebKey, len(keys))
	for _, key := range keys {
		if key.KeyID != "" && key.Valid() && key.IsPublic() && (key.Use == "" || key.Use == "sig") {
			usable[key.KeyID] = key
		}
	}
	return usable
}

// await reads the keys if there are none, waits for a read under way, and says how
// the last one ended.
func (k *keyring) await(ctx context.Context) error {
	k.mu.Lock()
	var pending <-chan struct{} = k.reading
	if k.set == nil {
		pending = k.refresh(ctx)
	}
	k.mu.Unlock()
	if pending != nil {
		select {
		case <-pending:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}
