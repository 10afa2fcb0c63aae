// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/pkg/readiness"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Kinds reads what the schemas of kinds say.
type Kinds interface {
	// Status says whether objects of a kind can tell that they are ready.
	Status(ctx context.Context, gvk canon.GVK) readiness.Status
}

const (
	// schemaAge is how long an answer about a schema counts, and schemaAgain how long a
	// failure does: a target that changes is looked at every second.
	schemaAge   = time.Minute
	schemaAgain = 5 * time.Second
)

// RESTKinds are Kinds by the API server's OpenAPI documents, which every user may read.
type RESTKinds struct {
	client rest.Interface
	clock  clock.PassiveClock

	mu    sync.Mutex
	known map[canon.GVK]knownStatus
}

// knownStatus is what a document said, and until when that counts.
type knownStatus struct {
	status readiness.Status
	// document has a digest in its address.
	document string
	until    time.Time
}

// NewRESTKinds makes Kinds.
func NewRESTKinds(config *rest.Config, clock clock.PassiveClock) (*RESTKinds, error) {
	client, err := newJSONClient(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of schemas: %w", err)
	}
	return &RESTKinds{client: client, clock: clock, known: map[canon.GVK]knownStatus{}}, nil
}

// Status implements Kinds. A schema that cannot be read is not known, and says nothing.
func (k *RESTKinds) Status(ctx context.Context, gvk canon.GVK) readiness.Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, now := k.known[gvk], k.clock.Now()
	if now.Before(known.until) {
		return known.status
	}
	next, err := k.read(ctx, gvk, known)
	next.until = now.Add(schemaAge)
	if err != nil {
		next = knownStatus{until: now.Add(schemaAgain)}
	}
	k.known[gvk] = next
	return next.status
}

// read asks for the document of a kind, unless that is the one which is known.
func (k *RESTKinds) read(ctx context.Context, gvk canon.GVK, known knownStatus) (knownStatus, error) {
	var index struct {
		Paths map[string]struct {
			Address string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	raw, err := k.get(ctx, "/openapi/v3")
	if err != nil {
		return knownStatus{}, err
	}
	if err := json.Unmarshal(raw, &index); err != nil {
		return knownStatus{}, fmt.Errorf("decoding the index of schemas: %w", err)
	}
	at := index.Paths[path.Join("apis", gvk.Group, gvk.Version)].Address
	if at == known.document && at != "" {
		return known, nil
	}
	if raw, err = k.get(ctx, at); err != nil {
		return knownStatus{}, err
	}
	status, err := readiness.StatusOf(raw, gvk)
	return knownStatus{status: status, document: at}, err
}

func (k *RESTKinds) get(ctx context.Context, at string) ([]byte, error) {
	if at == "" {
		return nil, errors.New("asking for a schema: the API server does not serve one")
	}
	raw, err := k.client.Get().RequestURI(at).MaxRetries(0).Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("asking for %s: %w", at, err)
	}
	return raw, nil
}
