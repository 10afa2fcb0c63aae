// SPDX-License-Identifier: Apache-2.0

//go:build integration

package roles

import (
	"strings"
	"testing"

	chromium "github.com/plumbline-dev/plumbline/test/harness/browser"
)

// A real browser runs the script and the style of each page, complains about none of it, and asks no
// other host.
func TestABrowserShowsEachPage(t *testing.T) {
	plan(t, "browsed")
	viewer := openConsole(t, "vic", "viewers")
	for path, title := range map[string]string{
		"/": "Fleet", "/drift?namespace=" + tenant: "Drift", "/plans": "Plans", "/plans/" + tenant + "/browsed": "Plan " + tenant + "/browsed", "/policies": "Policies",
		"/releases": "Releases", "/assessments": "Assessments", "/whoami": "Whoami", "/proxies": "Proxies",
	} {
		t.Run(title, func(t *testing.T) {
			dom, complaints := chromium.Open(t, viewer.WithKey(t, path))
			if len(complaints) > 0 {
				t.Errorf("the browser complains: %s", strings.Join(complaints, "\n"))
			}
			for _, want := range []string{"<h1>" + title + "</h1>", "The page is read anew every 5 seconds."} {
				if !strings.Contains(dom, want) {
					t.Errorf("%q is not in %s", want, dom)
				}
			}
		})
	}
}
