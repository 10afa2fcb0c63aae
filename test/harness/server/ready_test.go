// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
)

// A wait in vain said "context deadline exceeded" of the last question, and not why the process was not ready.
func TestAProcessThatDoesNotGetReadySaysWhy(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	var asked atomic.Int64
	health := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			http.Error(w, "the caches are not synced", http.StatusInternalServerError)
			return
		}
		end()
		<-r.Context().Done()
	}))
	t.Cleanup(health.Close)
	p := &Process{Health: strings.TrimPrefix(health.URL, "http://"), cmd: &exec.Cmd{Path: "server"}, log: &lockedBuffer{}, exited: make(chan error, 1)}
	if err := p.Ready(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "last seen: the caches are not synced") {
		t.Errorf("got %v", err)
	}
}
