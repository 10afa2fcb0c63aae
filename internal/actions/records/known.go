// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/packet"
)

// The ConfigMaps in Plumbline's namespace.
const (
	// KeysConfigMap holds the public keys of the executor, and KeyEnds in it says where keys end.
	KeysConfigMap = "plumbline-evidence"
	KeyEnds       = "key-ends.json"
	// AnchorConfigMap says how far the chains went at earlier times. The assessor writes it, and the
	// executor cannot.
	AnchorConfigMap = "plumbline-evidence-anchor"
)

// Keys are the keys by which records are believed, and where they end.
type Keys struct {
	Ring *evidence.Keyring
	Ends []evidence.KeyEnd
}

// NoKeyError says that the executor has published no key.
type NoKeyError struct{ System string }

func (e *NoKeyError) Error() string {
	return fmt.Sprintf("the ConfigMap %s/%s has no public key: has the executor ever run?", e.System, KeysConfigMap)
}

// ReadKeys reads the keys that the executor publishes.
func ReadKeys(ctx context.Context, c client.Reader, system string) (Keys, error) {
	found := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: system, Name: KeysConfigMap}, found); err != nil {
		return Keys{}, fmt.Errorf("reading the public keys: %w", err)
	}
	return ParseKeys(found)
}

// ParseKeys returns the keys in a ConfigMap, with those before a rotation. The error is a *NoKeyError without any.
func ParseKeys(in *corev1.ConfigMap) (k Keys, err error) {
	var files [][]byte
	for _, name := range slices.Sorted(maps.Keys(in.Data)) {
		if strings.Contains(in.Data[name], "-----BEGIN PUBLIC KEY-----") {
			files = append(files, []byte(in.Data[name]))
		}
	}
	if len(files) == 0 {
		return k, &NoKeyError{System: in.Namespace}
	}
	if k.Ring, err = evidence.ParseKeyring(files...); err != nil {
		return k, err
	}
	k.Ends, err = evidence.ParseKeyEnds([]byte(in.Data[KeyEnds]))
	return k, err
}

// ReadAnchors reads the checkpoints of all chains; none of an installation of an earlier release.
func ReadAnchors(ctx context.Context, c client.Reader, system string) (map[string][]evidence.Checkpoint, error) {
	found := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: system, Name: AnchorConfigMap}, found); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the anchor: %w", err)
	}
	return ParseAnchors(found)
}

// ParseAnchors returns the checkpoints in a ConfigMap by their chains.
func ParseAnchors(in *corev1.ConfigMap) (map[string][]evidence.Checkpoint, error) {
	anchors := map[string][]evidence.Checkpoint{}
	for chain, text := range in.Data {
		points, err := evidence.ParseCheckpoints(text)
		if err != nil {
			return nil, fmt.Errorf("reading the anchor of chain %s: %w", chain, err)
		}
		anchors[chain] = points
	}
	return anchors, nil
}

// ReadHeads reads the ends of all chains; should two ledgers know one, the further.
func ReadHeads(ctx context.Context, c client.Reader, system string) (map[string]evidence.Head, error) {
	ledgers, err := actions.ListLedgers(ctx, c, system)
	if err != nil {
		return nil, err
	}
	heads := map[string]evidence.Head{}
	for i := range ledgers {
		for _, chain := range ledgers[i].Status.Chains {
			if chain.Sequence > heads[chain.PolicyUID].Sequence {
				heads[chain.PolicyUID] = evidence.Head{Sequence: chain.Sequence, Digest: chain.Digest}
			}
		}
	}
	return heads, nil
}

// ReadPlans reads which records the plans name that have ended, and counts those that go on: the last record of such a
// plan may be stored and not named yet.
func ReadPlans(ctx context.Context, c client.Reader) (ended []evidence.PlanStatus, running int, err error) {
	list := &v1alpha1.RemediationPlanList{}
	if err := c.List(ctx, list); err != nil {
		return nil, 0, err
	}
	for i := range list.Items {
		if !wording.HasEnded(&list.Items[i]) {
			running++
			continue
		}
		ended = append(ended, packet.StatusOf(&list.Items[i]))
	}
	return ended, running, nil
}
