// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

const (
	// schemaAge is how long an answer about schemas serves several kinds.
	schemaAge = time.Second
	// schemaTimeout bounds the requests for it.
	schemaTimeout = 5 * time.Second
	// SchemaInterval is how often a [SchemaWatch] asks.
	SchemaInterval = 10 * time.Second
)

// schemas knows which version of its schemas the API server serves. A schema has the
// defaults that the API server fills in when it reads an object from etcd. A new default
// thus changes objects without a write, and no watch tells that.
type schemas struct {
	client rest.Interface
	clock  clock.PassiveClock

	mu sync.Mutex
	// at is the time of the last request, and err its failure.
	at      time.Time
	err     error
	release string
	// paths maps a group and version, such as apis/apps/v1, to an address with a digest.
	paths map[string]string
}

// readVersion returns a text that changes with the schema of a kind: the release of the API
// server, whose compiled defaults are in no document, and the digest of the kind's
// OpenAPI document. The text is empty while the API server does not answer.
func (s *schemas) readVersion(ctx context.Context, gvk schema.GroupVersionKind) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at.IsZero() || s.clock.Since(s.at) >= schemaAge {
		// A failure serves all waiting callers, so that a hanging API server costs one timeout.
		s.err = s.readSchemas(ctx)
		s.at = s.clock.Now()
	}
	if s.err != nil {
		return ""
	}
	document := path.Join("apis", gvk.Group, gvk.Version)
	if gvk.Group == "" {
		document = path.Join("api", gvk.Version)
	}
	return s.release + " " + s.paths[document]
}

func (s *schemas) readSchemas(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, schemaTimeout)
	defer cancel()
	var index struct {
		Paths map[string]struct {
			ServerRelativeURL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := s.get(ctx, "/openapi/v3", &index); err != nil {
		return err
	}
	var release struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := s.get(ctx, "/version", &release); err != nil {
		return err
	}
	s.release, s.paths = release.GitVersion, make(map[string]string, len(index.Paths))
	for document, at := range index.Paths {
		s.paths[document] = at.ServerRelativeURL
	}
	return nil
}

func (s *schemas) get(ctx context.Context, at string, into any) error {
	raw, err := s.client.Get().AbsPath(at).SetHeader("Accept", "application/json").Do(ctx).Raw()
	if err != nil {
		return fmt.Errorf("asking for %s: %w", at, err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("decoding %s: %w", at, err)
	}
	return nil
}

// SchemaWatch makes a Tracker list a kind anew when its schema has changed while the
// watch went on, as that of a custom kind does.
type SchemaWatch struct {
	Tracker *Tracker
	Clock   clock.WithTicker
}

// Start runs until ctx ends; it is a manager.Runnable.
func (w *SchemaWatch) Start(ctx context.Context) error {
	ticker := w.Clock.NewTicker(SchemaInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
			w.Tracker.relistOutdated(ctx)
		}
	}
}
