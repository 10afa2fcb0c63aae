// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/internal/actions/records"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// anchored reads the checkpoints of all chains from a file, else from the cluster. An
// installation of an earlier release has no checkpoint.
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
		err := c.Get(ctx, client.ObjectKey{Namespace: system, Name: records.AnchorConfigMap}, found)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading the anchor (--anchor reads it from a file): %w", err)
		}
	}
	return records.ParseAnchors(found)
}
