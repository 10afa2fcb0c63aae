// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// notesOf an installation are what Helm prints after it.
func notesOf(t *testing.T, args ...string) string {
	t.Helper()
	out, err := helm.Run(t.Context(), append([]string{"install", rendered.Release, rendered.ChartDir(), "--dry-run=client"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	_, notes, found := strings.Cut(out, "NOTES:")
	if !found {
		t.Fatalf("no notes were printed:\n%s", out)
	}
	return notes
}

// The notes said that nothing is ever changed, while the writer policy annotates objects, and that Redis
// only explains, while the stamps of the webhook need it.
func TestTheNotesSayWhatIsChangedAndWhatAuthorizes(t *testing.T) {
	const (
		unguarded = "It\njudges no object until there is a guard."
		annotates = "It annotates objects of the kinds in guard.resources"
		lost      = "Such a stamp authorizes a write only together with its record in Redis."
		noRedis   = "It does not know the writers of deletions and of writes through /scale"
	)
	webhook := []string{"--set", "policies.writerStamp=Webhook"}
	for name, tc := range map[string]struct {
		args     []string
		has, not []string
	}{
		"as the chart comes":               {nil, []string{annotates, unguarded}, []string{"ever changed", noRedis}},
		"with the executor":                {[]string{"--set", "executor.enabled=true"}, []string{"It changes no spec, unless a RemediationPolicy is Active."}, nil},
		"with the mesh":                    {[]string{"--set", withMesh}, []string{"It changes no spec; pods that ask for a proxy get one."}, nil},
		"where the webhook stamps":         {webhook, []string{lost}, []string{noRedis}},
		"where the policy stamps":          {[]string{"--set", "policies.writerStamp=Policy"}, nil, []string{lost}},
		"where both stamp":                 {[]string{"--set", "policies.writerStamp=Both"}, []string{"and by the webhook"}, []string{lost}},
		"as a person checks it":            {nil, []string{"helm test plumbline", "kubectl plumbline doctor", "/docs/guides/install.md"}, []string{"webhook.replicas is"}},
		"with one webhook":                 {[]string{"--set", "webhook.replicas=1"}, []string{"WARNING: webhook.replicas is 1."}, nil},
		"in the network of nodes":          {[]string{"--set", "webhook.hostNetwork=true,webhook.port=9443"}, []string{"in the network of their nodes"}, nil},
		"with the mesh and no webhook":     {[]string{"--set", withMesh}, []string{"While the webhook is away, the API server creates no pod that asks for a proxy."}, nil},
		"without Redis":                    {[]string{"--set", "policies.writerStamp=Policy", "--set", "redis.enabled=false"}, []string{noRedis}, []string{"WARNING"}},
		"the webhook with another's Redis": {append([]string{"--set", "redis.enabled=false", "--set", "redis.external.address=r:1"}, webhook...), []string{lost}, []string{noRedis}},
	} {
		t.Run(name, func(t *testing.T) {
			notes := notesOf(t, tc.args...)
			for _, want := range tc.has {
				if !strings.Contains(notes, want) {
					t.Errorf("the notes do not say %q:\n%s", want, notes)
				}
			}
			for _, not := range tc.not {
				if strings.Contains(notes, not) {
					t.Errorf("the notes say %q:\n%s", not, notes)
				}
			}
		})
	}
}

// Stamps of the webhook without Redis made every deployment drift, and nothing said so.
func TestStampsOfTheWebhookNeedRedis(t *testing.T) {
	for _, by := range []string{"Webhook", "Both"} {
		_, err := helm.Template(t.Context(), "--set", "policies.writerStamp="+by, "--set", "redis.enabled=false")
		var failed *rendered.Error
		if !errors.As(err, &failed) || !strings.Contains(failed.Stderr, "policies.writerStamp is "+by+" and there is no Redis") || !strings.Contains(failed.Stderr, "redis.external.address") {
			t.Errorf("%s: the error is %v", by, err)
		}
	}
}
