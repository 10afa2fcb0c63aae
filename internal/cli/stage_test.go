// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

func TestWhatIsMadeAgainIsToldBeforeItIs(t *testing.T) {
	for name, args := range map[string][]string{
		"preview/recreates": {"plan", "preview", "production"},
		"explain/recreates": {"policy", "explain", "production"},
	} {
		t.Run(name, func(t *testing.T) {
			f := clitest.Vanished(t, clitest.ActiveBy("alice"))
			f.Targets.OnPut = func(body []byte) ([]byte, error) {
				var made metav1.PartialObjectMetadata
				clitest.Must(t, json.Unmarshal(body, &made))
				want := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "parent", UID: "uid-parent", Controller: new(true)}}
				if diff := cmp.Diff(want, made.OwnerReferences); diff != "" {
					t.Errorf("its owners (-want +got):\n%s", diff)
				}
				return body, nil
			}
			got := f.Run(t, verbs, "", args...)
			if got.Code != 0 || got.Stderr != "" {
				t.Errorf("got %d, %s", got.Code, got.Stderr)
			}
			golden.Check(t, filepath.Join("testdata", name+".txt"), got.Stdout)
		})
	}
}

// People read in which stage a drift is.
func TestTheStageOfADriftIsNamed(t *testing.T) {
	first := func(p *v1alpha1.RemediationPolicy) {
		p.Spec.Escalation = &v1alpha1.RemediationEscalation{RemediateWhenAny: v1alpha1.RemediationConditions{MinimumDriftAge: &metav1.Duration{Duration: 1000 * 3600e9}}}
	}
	second := func(p *v1alpha1.RemediationPolicy) {
		p.Spec.Escalation = &v1alpha1.RemediationEscalation{RemediateWhenAny: v1alpha1.RemediationConditions{MinimumDriftAge: &metav1.Duration{Duration: 1e9}}}
	}
	for name, test := range map[string]struct {
		policy func(*v1alpha1.RemediationPolicy)
		args   []string
		want   string
	}{
		"explain, first":  {first, []string{"policy", "explain", "production", "deployment/web"}, "stage Notify: people are notified, and it is remediated when it is 1000h old"},
		"explain, second": {second, []string{"policy", "explain", "production", "deployment/web"}, "✓ Escalation      stage Remediate"},
		"preview, first":  {first, []string{"plan", "preview", "production"}, "shop/deployment.apps/web  NotifyStage: stage Notify: people are notified"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := clitest.Shop(t, clitest.ActiveBy("bob"), test.policy).Run(t, verbs, "", test.args...); !strings.Contains(got.Stdout, test.want) {
				t.Errorf("got %+v, want %q", got, test.want)
			}
		})
	}
}
