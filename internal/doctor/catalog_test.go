// SPDX-License-Identifier: Apache-2.0

package doctor

import "testing"

// The link was a path of the repository, which a user of the plugin does not have.
func TestDocsAreTheURLOfTheVersion(t *testing.T) {
	const page = "/docs/reference/doctor.md#webhookbundle"
	for name, tc := range map[string]struct{ version, tag string }{
		"a release":                           {"v0.1.0", "v0.1.0"},
		"a release without the letter":        {"0.1.0", "v0.1.0"},
		"a release candidate":                 {"v0.2.0-rc.1", "v0.2.0-rc.1"},
		"a build from source":                 {"(devel)", "main"},
		"a build of a commit, without a tag":  {"v0.1.1-0.20260301120000-0123456789ab", "main"},
		"a build of a changed tree":           {"v0.1.0+dirty", "main"},
		"a version that is unknown":           {"", "main"},
		"a text that would leave the website": {"v0.1.0/../../..", "main"},
	} {
		t.Run(name, func(t *testing.T) {
			want := "https://github.com/plumbline-dev/plumbline/blob/" + tc.tag + page
			if got := (Check{ID: "webhook.bundle"}).Docs(tc.version); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}
