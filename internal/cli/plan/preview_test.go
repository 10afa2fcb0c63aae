// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

func TestPreview_Golden(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New(`User "alice" cannot update resource "deployments"`))
	denied := apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web", nil)
	denied.ErrStatus.Message = `deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'replicas' with binding 'replicas' denied request: at least two`
	closed := func(p *v1alpha1.RemediationPolicy) {
		p.Spec.Schedule = v1alpha1.RemediationSchedule{MaintenanceWindow: &v1alpha1.MaintenanceWindow{Start: "22:00", End: "23:00", TimeZone: "UTC"}}
	}
	cases := map[string]struct {
		policy []func(*v1alpha1.RemediationPolicy)
		put    func([]byte) ([]byte, error)
		args   []string
	}{
		"converges": {},
		"wide":      {args: []string{"-o", "wide"}},
		"json":      {args: []string{"-o", "json"}},
		"diverges": {put: func(body []byte) ([]byte, error) {
			return []byte(strings.Replace(string(body), `"replicas":1`, `"replicas":3`, 1)), nil
		}},
		"forbidden": {put: func([]byte) ([]byte, error) { return nil, forbidden }},
		"denied":    {put: func([]byte) ([]byte, error) { return nil, denied }},
		"conflict": {put: func([]byte) ([]byte, error) {
			return nil, apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "web", errors.New("changed"))
		}},
		"unknown":    {put: func([]byte) ([]byte, error) { return nil, apierrors.NewInternalError(errors.New("etcd is\nill")) }},
		"closed":     {policy: []func(*v1alpha1.RemediationPolicy){closed}},
		"left-out":   {policy: []func(*v1alpha1.RemediationPolicy){func(p *v1alpha1.RemediationPolicy) { p.Spec.MinimumSeverity = v1alpha1.SeverityCritical }}},
		"notify":     {policy: []func(*v1alpha1.RemediationPolicy){func(p *v1alpha1.RemediationPolicy) { p.Spec.Action = v1alpha1.ActionNotifyOnly }}},
		"wrong-zone": {policy: []func(*v1alpha1.RemediationPolicy){closed, func(p *v1alpha1.RemediationPolicy) { p.Spec.Schedule.MaintenanceWindow.TimeZone = "Mars/Base" }}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := clitest.Shop(t, tc.policy...)
			f.Targets.OnPut = tc.put
			got := f.Run(t, verbs, "", append([]string{"plan", "preview", "production"}, tc.args...)...)
			if got.Code != 0 || got.Stderr != "" {
				t.Errorf("got %d, %s", got.Code, got.Stderr)
			}
			if strings.Contains(got.Stdout, "-secret") {
				t.Errorf("a secret is shown:\n%s", got.Stdout)
			}
			golden.Check(t, filepath.Join("testdata", "preview/"+name+".txt"), got.Stdout)
		})
	}
}
