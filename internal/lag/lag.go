// SPDX-License-Identifier: Apache-2.0

// Package lag lets the stored counts of an object be those of a moment ago. A repair moves such
// counts there and back, and the last values are stored once.
package lag

import (
	"maps"
	"sync"
	"time"
)

// Most is how long stored counts may lag behind.
const Most = time.Second

// forgotten is after how long a lag is forgotten whose object was not looked at again.
const forgotten = time.Minute

// Times remembers since when the stored counts of objects lag behind, each by a key. The zero value
// is ready to use. A process that dies forgets all: the next leader counts everything when it
// starts.
type Times struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// Left returns how long the counts of an object may lag behind from now on; zero or less when they
// are to be stored.
func (t *Times) Left(key string, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.since, func(_ string, since time.Time) bool { return now.Sub(since) > forgotten })
	if t.since == nil {
		t.since = map[string]time.Time{}
	}
	since, lags := t.since[key]
	if !lags || now.Before(since) { // the clock of the API server may be set back
		t.since[key], since = now, now
	}
	return Most - now.Sub(since)
}

// Forget notes that the counts of an object are stored, or need not be.
func (t *Times) Forget(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.since, key)
}
