// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
)

// The ConfigMap with the public keys of the records, made by the chart.
const (
	EvidenceConfigMap = "plumbline-evidence"
	EvidenceKeys      = "keys.pem"
)

// publishAgain is when to try again after a failure.
const publishAgain = 30 * time.Second

// publisher tells the public keys to whoever verifies records. They are a
// convenience: who does not trust the cluster has a copy of them elsewhere.
type publisher struct {
	client    client.Client
	namespace string
	keys      []byte
	clock     clock.WithTicker
	log       logr.Logger
}

// Start implements manager.Runnable; only the leader does.
func (p *publisher) Start(ctx context.Context) error {
	ticker := p.clock.NewTicker(publishAgain)
	defer ticker.Stop()
	for {
		err := p.publish(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		p.log.Error(err, "publishing the public keys of the evidence")
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

func (p *publisher) publish(ctx context.Context) error {
	var m corev1.ConfigMap
	if err := p.client.Get(ctx, types.NamespacedName{Namespace: p.namespace, Name: EvidenceConfigMap}, &m); err != nil {
		return fmt.Errorf("reading ConfigMap %s: %w", EvidenceConfigMap, err)
	}
	if m.Data[EvidenceKeys] == string(p.keys) {
		return nil
	}
	if m.Data == nil {
		m.Data = map[string]string{}
	}
	m.Data[EvidenceKeys] = string(p.keys)
	if err := p.client.Update(ctx, &m, client.FieldOwner(exec.FieldManager)); err != nil {
		return fmt.Errorf("writing ConfigMap %s: %w", EvidenceConfigMap, err)
	}
	return nil
}
