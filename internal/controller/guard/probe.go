// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// DryRun is the Prober on a real API server.
type DryRun struct {
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
}

// mark is the status of a probe; nothing else of it is looked at.
const mark = `{"status":{"conditions":[{"type":"` + v1alpha1.ConditionEnforcementProbe +
	`","status":"Unknown","reason":"Probe","message":"a dry run, never stored","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`

// Probe makes the dry run that the policy refuses.
func (d DryRun) Probe(ctx context.Context, g *v1alpha1.ClusterSpecGuard) Answer {
	target := &v1alpha1.ClusterSpecGuard{ObjectMeta: metav1.ObjectMeta{Name: g.Name}}
	err := d.Client.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, []byte(mark)),
		&client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}}})
	switch {
	case err == nil:
		return Answer{}
	case apierrors.IsForbidden(err):
		return parseProof(g.Name, err)
	default:
		return Answer{Err: err}
	}
}

// parseProof reads the message of the policy's second validation.
func parseProof(guard string, refusal error) Answer {
	_, proof, ok := strings.Cut(refusal.Error(), "proof: ClusterSpecGuard "+guard+" generation ")
	if !ok {
		return Answer{Err: refusal}
	}
	var a Answer
	var registered string
	if n, err := fmt.Sscanf(proof, "%d is in force for %s", &a.Generation, &registered); n != 2 {
		return Answer{Err: fmt.Errorf("reading the proof %q: %w", proof, err)}
	}
	registered, _, _ = strings.Cut(registered, ";")
	a.Registered = strings.Split(registered, ",")
	return a
}

// Served asks the API server and no cache.
func (d DryRun) Served(ctx context.Context) (bool, error) {
	err := d.Live.List(ctx, &v1alpha1.ClusterSpecGuardList{}, client.Limit(1))
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return false, nil
	default:
		return false, fmt.Errorf("asking whether ClusterSpecGuards are served: %w", err)
	}
}
