// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
)

// The author of the release asks for another image after the last stage has passed, and the discovery server
// has not seen it: no request has proved that image.
func TestNext_PutsNoChangeIntoTheBaselineThatTheRunHasNotMeasured(t *testing.T) {
	w := newWorld(t, v1alpha1.WorkUpdateBaseline, 0).withClone(t, 6)
	w.release.Spec.Variations[1].Clone.Image = "shop:3"
	action := work.Next(w.read())
	if action.Kind != work.End || action.Status.Phase != v1alpha1.WorkRefused || action.Status.Reason != v1alpha1.WorkInvalidSpec || !strings.Contains(action.Status.Message, "run 3 has measured") {
		t.Errorf("the action is %+v", action)
	}
	w.release.Spec.Variations[1].Clone.Image = "shop:2"
	if action := work.Next(w.read()); action.Kind == work.End {
		t.Errorf("the change of the run is refused: %+v", action.Status)
	}
}
