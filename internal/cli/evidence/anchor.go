// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// anchorConfigMap says how far the chains went at earlier times. The assessor writes it, and
// the executor cannot.
const anchorConfigMap = "plumbline-evidence-anchor"

// anchored reads the checkpoints of all chains from a file, else from the cluster. An
// installation of an earlier release has none.
func (o *verifyOptions) anchored(ctx context.Context, c *invocation.Cluster, system string) (map[string][]evidence.Checkpoint, error) {
	found := &corev1.ConfigMap{}
	switch {
	case o.anchor != "":
		content, err := os.ReadFile(o.anchor)
		if err != nil {
			return nil, fmt.Errorf("reading the anchor: %w", err)
		}
		if err := yaml.Unmarshal(content, found); err != nil {
			return nil, fmt.Errorf("reading the anchor: %w", err)
		}
	case c != nil:
		err := c.Get(ctx, client.ObjectKey{Namespace: system, Name: anchorConfigMap}, found)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading the anchor (--anchor reads it from a file): %w", err)
		}
	}
	anchors := map[string][]evidence.Checkpoint{}
	for chain, text := range found.Data {
		points, err := evidence.ParseCheckpoints(text)
		if err != nil {
			return nil, fmt.Errorf("reading the anchor of chain %s: %w", chain, err)
		}
		anchors[chain] = points
	}
	return anchors, nil
}

// noted is the last checkpoint of a chain; nil where there is none.
func noted(points []evidence.Checkpoint) *evidence.Checkpoint {
	if len(points) == 0 {
		return nil
	}
	return &points[len(points)-1]
}
