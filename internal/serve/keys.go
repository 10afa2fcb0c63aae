// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/serve/session"
)

// rereadEvery is how often the file of the keys is read. The kubelet itself takes about a minute for a Secret that has changed.
const rereadEvery = 10 * time.Second

// keyFile reads the keys of sessions from a mounted Secret.
type keyFile struct {
	path string
	keys *session.Keys
	// text is the content from which the keys were read last.
	text []byte
	// failure is the last fault that was logged.
	failure string
}

func openKeyFile(path string) (*keyFile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the keys of sessions: %w", err)
	}
	keys, err := session.ParseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("reading the keys of sessions: %w", err)
	}
	return &keyFile{path: path, keys: keys, text: text}, nil
}

// followFile replaces the keys when the file changes, until ctx ends. The keys of before stay while the file has a fault.
func (f *keyFile) followFile(ctx context.Context, c clock.WithTicker, log *slog.Logger) {
	ticker := c.NewTicker(rereadEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			f.rereadKeys(log)
		}
	}
}

func (f *keyFile) rereadKeys(log *slog.Logger) {
	text, err := os.ReadFile(f.path)
	if err == nil && bytes.Equal(text, f.text) {
		f.failure = ""
		return
	}
	if err == nil {
		err = f.keys.Replace(text)
	}
	if err != nil {
		if err.Error() != f.failure {
			log.Warn("api.session.keys.failed", "error", err.Error())
		}
		f.failure = err.Error()
		return
	}
	f.text, f.failure = text, ""
	log.Info("api.session.keys.replaced")
}
