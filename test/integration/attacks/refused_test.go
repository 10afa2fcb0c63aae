// SPDX-License-Identifier: Apache-2.0

//go:build integration

package attacks

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// The webhook records an update before the API server decides whether to store it, so a
// tenant can have an update recorded that never happens.
func TestARefusedUpdatePutsNoTenantsNameOnTheScaleOfCI(t *testing.T) {
	p := newPlace(t)
	p.guard()
	outdated := p.deploy("web").DeepCopy()
	p.setImage(as(t, ci), "web", "registry.example/shop:2")
	p.untilIs("web", "InSync")

	guess := p.live("web")
	guess.ResourceVersion, guess.Spec.Replicas = outdated.ResourceVersion, new(int32(5))
	if err := as(t, mallory).Update(t.Context(), guess); !apierrors.IsConflict(err) {
		t.Fatalf("the update of an outdated version is not refused: %v", err)
	}
	p.recorded(mallory, specguard.OperationUpdate, 1)
	p.scaleTo(as(t, ci), "web", 5)
	p.untilIs("web", "InSync [trusted-writer-scale /spec/replicas]")
}
