// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// M10: clients of the other family of addresses pass the split, however many proxies have it.
func TestAReleaseTellsOfRequestsThatPassTheSplit(t *testing.T) {
	w := newWorld(t)
	release := ir.Object{Kind: "ABRelease", Namespace: "shop", Name: "web"}
	w.problems = []ir.Problem{
		{Object: release, Reason: ir.IPv6NotSplit, Message: "clients of fd00::1 pass the split"},
		{Object: release, Reason: ir.SelectorsOverlap, Message: "a pod is the selector's as well"},
	}
	c := meta.FindStatusCondition(w.look().Status.Conditions, v1alpha1.ConditionDegraded)
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason != "SelectorsOverlap" || c.Message != "SelectorsOverlap: a pod is the selector's as well; IPv6NotSplit: clients of fd00::1 pass the split" {
		t.Errorf("the condition is %+v", c)
	}
	if told := strings.Join(w.said(), "\n"); !strings.Contains(told, "Warning IPv6NotSplit clients of fd00::1 pass the split") || !strings.Contains(told, "Warning SelectorsOverlap a pod") {
		t.Errorf("the events are %s", told)
	}
	w.problems = nil
	if got := state(w.look(), v1alpha1.ConditionDegraded); got != metav1.ConditionFalse {
		t.Errorf("without a problem the condition is %q", got)
	}
}

// M9: a release names also the part of its Service that proxies do not follow.
func TestAReleaseTellsOfAProblemOfItsService(t *testing.T) {
	w := newWorld(t)
	w.problems = []ir.Problem{{Object: ir.Object{Kind: "Service", Namespace: "shop", Name: "web"}, Reason: ir.TrafficDistribution, Message: "proxies do not follow its trafficDistribution"}}
	w.look()
	c := meta.FindStatusCondition(w.look().Status.Conditions, v1alpha1.ConditionReady)
	if c == nil || c.Status != metav1.ConditionTrue || !strings.HasSuffix(c.Message, "; proxies do not follow its trafficDistribution") {
		t.Errorf("the condition is %+v", c)
	}
}
