// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

const guide = "../../docs/guides/notifications.md"

// D25 of the review of remediation: the guide promised 50 recipients and the kind took 32.
func TestTheBoundsOfTheGuideAreThoseOfTheKindAndTheCode(t *testing.T) {
	crd, err := os.ReadFile("../../charts/plumbline/files/crds/plumbline.dev_remediationpolicies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	// bound is that of a field of channels, which stands before the field's end.
	bound := func(field, name string) string {
		found := regexp.MustCompile(`(?s)\n {20}( {2,8})` + field + `:\n.*?\n {20}\s+` + name + `: (\d+)\n`).FindSubmatch(crd)
		if found == nil {
			t.Fatalf("the kind has no %s of %s", name, field)
		}
		return string(found[2])
	}
	if got, want := bound("recipients", "maxItems"), fmt.Sprint(maxRecipients); got != want {
		t.Errorf("the kind takes %s recipients, the code %s", got, want)
	}
	if got, want := bound("source", "maxLength"), fmt.Sprint(maxSource); got != want {
		t.Errorf("the kind takes a source of %s characters, the code %s", got, want)
	}
	if want := fmt.Sprintf("the recipients (up to %d)", maxRecipients); !strings.Contains(string(text), want) {
		t.Errorf("the guide does not say %q", want)
	}
}

// The guide's policies must not show fields that the kind does not have.
func TestTheGuideShowsFieldsOfTheKind(t *testing.T) {
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	channels := map[v1alpha1.ChannelType]bool{}
	for _, block := range regexp.MustCompile("(?s)```yaml\n# in a RemediationPolicy\n(.*?)```").FindAllSubmatch(text, -1) {
		var spec v1alpha1.RemediationPolicySpec
		if err := yaml.UnmarshalStrict(block[1], &spec); err != nil {
			t.Errorf("%v:\n%s", err, block[1])
		}
		for _, c := range spec.Notifications.Channels {
			channels[c.Type] = true
		}
	}
	for _, kind := range []v1alpha1.ChannelType{v1alpha1.ChannelSlack, v1alpha1.ChannelEmail, v1alpha1.ChannelWebhook, v1alpha1.ChannelCloudEvents} {
		if !channels[kind] {
			t.Errorf("the guide shows no channel of type %s", kind)
		}
	}
}
