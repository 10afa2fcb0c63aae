// SPDX-License-Identifier: Apache-2.0

//go:build integration

package skew

import (
	"bufio"
	"os"
	"regexp"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
)

// formerVariable names the environment variable that names the directory of the programs of
// the former release. `make skew-long` sets it.
const formerVariable = "PLUMBLINE_FORMER"

func TestServersWorkBesideTheKindsOfTheOtherRelease(t *testing.T) {
	w := newWorld(t)
	binaries := os.Getenv(formerVariable)
	if binaries == "" {
		w.upgradeRelease()
	} else {
		former := w.prepareServers(binaries)
		former.startAll()
		former.keepThrough(w.upgradeRelease)
		t.Run("the former servers beside the present kinds", w.checkWork)
		former.stopAll()
		former.startAll()
		t.Run("former servers that started beside the present kinds", w.checkWork)
		former.stopAll()
	}
	present := w.prepareServers(buildPresent(t))
	present.startAll()
	present.keepThrough(w.rollBackRelease)
	t.Run("the present servers beside the former kinds", w.checkWork)
	present.stopAll()
	present.startAll()
	t.Run("present servers that started beside the former kinds", w.checkWork)
	present.stopAll()
	if binaries != "" {
		former := w.prepareServers(binaries)
		former.startAll()
		t.Run("the former servers after the rollback", w.checkWork)
		former.stopAll()
	}
	w.checkRefusals()
}

// refusal matches a counter of requests for Plumbline's kinds that the API server refused:
// for a missing right, for an unknown field, or as invalid.
var refusal = regexp.MustCompile(`^apiserver_request_total\{.*code="(400|403|422)".*group="plumbline\.dev"`)

// newKind matches the refusals of a kind that the former release lacks, and its rights with it: the present
// servers ask for it until they can read it.
var newKind = regexp.MustCompile(`code="403".*resource="specguardexceptions"`)

// checkRefusals fails the test if the API server refused a request for one of Plumbline's
// kinds. The test makes no such request.
func (w *world) checkRefusals() {
	w.t.Helper()
	kube, err := kubernetes.NewForConfig(w.server.Config)
	must(w.t, err)
	page, err := kube.RESTClient().Get().AbsPath("/metrics").DoRaw(w.t.Context())
	must(w.t, err)
	if !strings.Contains(string(page), `group="plumbline.dev"`) {
		w.t.Error("the API server counts no request for Plumbline's kinds")
	}
	for lines := bufio.NewScanner(strings.NewReader(string(page))); lines.Scan(); {
		if refusal.MatchString(lines.Text()) && !newKind.MatchString(lines.Text()) {
			w.t.Errorf("the API server refused requests: %s", lines.Text())
		}
	}
}
