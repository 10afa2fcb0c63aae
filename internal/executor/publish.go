// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
)

// The ConfigMap with the public keys of the records, made by the chart.
const (
	EvidenceConfigMap = "plumbline-evidence"
	EvidenceKeys      = "keys.pem"
	// EvidenceKeyEnds says where keys end whose private halves are gone.
	EvidenceKeyEnds = "key-ends.json"
)

// publishAgain is how often the ConfigMap is looked at.
const publishAgain = 30 * time.Second

// publisher tells the public keys to whoever verifies records, and restores them when
// another writer has changed them. They are a convenience: who does not trust the cluster
// has a copy of them elsewhere.
type publisher struct {
	client    client.Client
	namespace string
	keys      []byte
	clock     clock.WithTicker
	log       logr.Logger
	restored  prometheus.Counter

	mu sync.Mutex
	// ends are all that this process has seen; published says that it has told its own keys.
	ends      []evidence.KeyEnd
	published bool
}

var _ exec.KeyEnds = (*publisher)(nil)

func newRestored() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{
		Name: "plumbline_remediation_evidence_keys_restored_total",
		Help: "Times that another writer had changed the published public keys of evidence, or the ends of keys, and the executor restored them.",
	})
}

// Start implements manager.Runnable; only the leader does.
func (p *publisher) Start(ctx context.Context) error {
	ticker := p.clock.NewTicker(publishAgain)
	defer ticker.Stop()
	for {
		if err := p.publish(ctx); err != nil && ctx.Err() == nil {
			p.log.Error(err, "publishing the public keys of the evidence")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// Ends implements exec.KeyEnds.
func (p *publisher) Ends(ctx context.Context) ([]evidence.KeyEnd, error) {
	if err := p.publish(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.ends), nil
}

// Declare implements exec.KeyEnds.
func (p *publisher) Declare(ctx context.Context, end evidence.KeyEnd) error {
	return p.publish(ctx, end)
}

// publish stores the keys and the ends, if they are not there already, and more ends.
func (p *publisher) publish(ctx context.Context, more ...evidence.KeyEnd) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { return p.store(ctx, more) })
}

func (p *publisher) store(ctx context.Context, more []evidence.KeyEnd) error {
	var m corev1.ConfigMap
	if err := p.client.Get(ctx, types.NamespacedName{Namespace: p.namespace, Name: EvidenceConfigMap}, &m); err != nil {
		return fmt.Errorf("reading ConfigMap %s: %w", EvidenceConfigMap, err)
	}
	before := published{own: string(p.keys), ends: p.ends}
	wanted, changed := before.restore(m.Data)
	if changed != "" && p.published || strings.HasPrefix(changed, foreign) {
		p.log.Error(nil, "evidence.keys.changed", "configMap", EvidenceConfigMap, "change", changed)
		p.restored.Inc()
	}
	for _, end := range more {
		wanted.ends = evidence.AddKeyEnd(wanted.ends, end)
	}
	next := wanted.data(m.Data)
	if !maps.Equal(m.Data, next) {
		m.Data = next
		if err := p.client.Update(ctx, &m, client.FieldOwner(exec.FieldManager)); err != nil {
			return fmt.Errorf("writing ConfigMap %s: %w", EvidenceConfigMap, err)
		}
	}
	p.ends, p.published = wanted.ends, true
	return nil
}

// published is the content of the ConfigMap.
type published struct {
	own  string
	ends []evidence.KeyEnd
}

// foreign begins the words for keys that are not those of this executor.
const foreign = "keys of another writer"

// restore compares what is stored with what is known. An end that is not known is taken
// over: another executor may have declared it. The words name the change of the other writer.
func (p published) restore(data map[string]string) (wanted published, changed string) {
	wanted = p
	stored, err := evidence.ParseKeyEnds([]byte(data[EvidenceKeyEnds]))
	for _, end := range stored {
		wanted.ends = evidence.AddKeyEnd(wanted.ends, end)
	}
	lost := slices.ContainsFunc(p.ends, func(e evidence.KeyEnd) bool { return !slices.Contains(stored, e) })
	switch {
	case p.hasForeign(data):
		return wanted, foreign
	case data[EvidenceKeys] != p.own:
		return wanted, "the keys"
	case err != nil || lost:
		return wanted, "the ends of keys"
	}
	return wanted, ""
}

// hasForeign says whether there are keys that this executor does not know.
func (p published) hasForeign(data map[string]string) bool {
	own, err := evidence.ParseKeyring([]byte(p.own))
	if err != nil {
		return false // a test's
	}
	for _, text := range data {
		if !strings.Contains(text, publicKey) {
			continue
		}
		ring, err := evidence.ParseKeyring([]byte(text))
		if err != nil || slices.ContainsFunc(ring.IDs(), func(id string) bool { return !slices.Contains(own.IDs(), id) }) {
			return true
		}
	}
	return false
}

// publicKey begins each key, by which a verifier finds it in whichever entry.
const publicKey = "-----BEGIN PUBLIC KEY-----"

// data is what is to be stored over data: other entries stay, unless they have keys.
func (p published) data(data map[string]string) map[string]string {
	next := map[string]string{}
	for name, text := range data {
		if !strings.Contains(text, publicKey) {
			next[name] = text
		}
	}
	next[EvidenceKeys] = p.own
	if len(p.ends) > 0 {
		raw, err := json.Marshal(p.ends)
		if err != nil {
			panic("ends of keys cannot be encoded: " + err.Error()) // strings and numbers always can
		}
		next[EvidenceKeyEnds] = string(raw)
	} else {
		delete(next, EvidenceKeyEnds)
	}
	return next
}
