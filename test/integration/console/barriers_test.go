// SPDX-License-Identifier: Apache-2.0

//go:build integration

package console

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"html"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/internal/console/view"
	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/test/harness/browser"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
	"github.com/plumbline-dev/plumbline/test/harness/seed"
)

const (
	pages = "../../../internal/console/pages/testdata"
	// axeDigest is the SHA-256 of axe-core 4.13.0, see its README.md.
	// barred is a page with barriers: a page without any is one only because axe-core would find them.
	barred    = "barred.html"
	axeDigest = "c24f097bd2f451d4f933e8bc7d8d539f8672a2ebcb5cc9f9f3eec8ca9470a0c1"
)

// frames opens each page in a frame, has axe-core look for barriers there, and writes the answer into the
// page that has the frames.
const frames = `"use strict";
(async () => {
  const found = {};
  const axe = await (await fetch("/axe.js")).text();
  for (const name of await (await fetch("/names")).json()) {
    const frame = document.createElement("iframe");
    frame.width = 1280;
    frame.height = 900;
    const loaded = new Promise((done) => { frame.onload = done; });
    frame.src = "/pages/" + name;
    document.body.append(frame);
    await loaded;
    frame.contentWindow.eval(axe);
    const answer = await frame.contentWindow.axe.run(frame.contentDocument);
    found[name] = answer.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.html.slice(0, 200)));
    frame.remove();
  }
  document.getElementById("found").textContent = JSON.stringify(found);
})();
`

// serve serves the pages with their assets, and the page that looks into each.
func serve(t *testing.T, names []string) string {
	t.Helper()
	axe, err := os.ReadFile("testdata/axe/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	if digest := sha256.Sum256(axe); hex.EncodeToString(digest[:]) != axeDigest {
		t.Fatalf("axe-core is another one: %x", digest)
	}
	list, err := json.Marshal(names)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	send := func(path, kind string, body []byte) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(body)
		})
	}
	send("/{$}", "text/html", []byte(`<!DOCTYPE html><title>Barriers</title><pre id="found"></pre><script src="/frames.js"></script>`))
	send("/frames.js", "text/javascript", []byte(frames))
	send("/axe.js", "text/javascript", axe)
	send("/names", "application/json", list)
	send("/pages/"+barred, "text/html", []byte(`<!DOCTYPE html><title>Barred</title><p style="color: #777; background: #888">low</p><input><table><tr><th>`))
	for _, name := range names {
		if name != barred {
			send("/pages/"+name, "text/html", []byte(golden.Read(t, filepath.Join(pages, name))))
		}
	}
	mux.Handle("GET "+view.AssetsPath, http.FileServerFS(view.Assets))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func TestNoPageHasABarrier(t *testing.T) {
	files, err := fs.Glob(os.DirFS(pages), "*.*")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d pages were found: %v", len(files), err)
	}
	files = due(t, files)
	address := serve(t, append(files, barred))
	for name, flag := range map[string]string{"light": browser.Light, "dark": browser.Dark} {
		t.Run(name, func(t *testing.T) {
			found := findBarriers(t, address, flag)
			for _, barrier := range []string{"html-has-lang", "label", "color-contrast"} {
				if !strings.Contains(strings.Join(found[barred], "\n"), barrier+": ") {
					t.Errorf("axe-core finds no barrier %s on the page that has it: %q", barrier, found[barred])
				}
			}
			delete(found, barred)
			if diff := cmp.Diff(without(files), found); diff != "" {
				t.Errorf("axe-core finds barriers (-want +got):\n%s", diff)
			}
		})
	}
}

// due are the pages of this rotation: one in four, or all in the long run.
func due(t *testing.T, files []string) []string {
	t.Helper()
	if os.Getenv(seed.Long) == "1" {
		return files
	}
	r, err := rotation.FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	var chosen []string
	for _, i := range rotation.Slice(len(files), 4, r) {
		chosen = append(chosen, files[i])
	}
	return chosen
}

// without has no barrier on any page.
func without(files []string) map[string][]string {
	none := map[string][]string{}
	for _, name := range files {
		none[filepath.Base(name)] = []string{}
	}
	return none
}

var foundBarriers = regexp.MustCompile(`(?s)<pre id="found">(.*?)</pre>`)

func findBarriers(t *testing.T, address string, flags ...string) map[string][]string {
	t.Helper()
	dom, complaints := browser.Open(t, address+"/", append(flags, "--virtual-time-budget=60000")...)
	found := map[string][]string{}
	match := foundBarriers.FindStringSubmatch(dom)
	if match == nil || json.Unmarshal([]byte(html.UnescapeString(match[1])), &found) != nil {
		t.Fatalf("axe-core gave no answer: %q in %s", complaints, dom)
	}
	return found
}

// TestABrowserShowsEachPage of cli/roles is content with a page only because the browser would complain.
func TestABrowserComplainsAboutWhatThePolicyRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ body, want string }{
		"a script in the page":        {"<script>document.title = 1</script>", "Content Security Policy"},
		"a style in the page":         {`<p style="color: red">`, "Content Security Policy"},
		"an image of another host":    {`<img src="http://evil.example/a.png">`, "Content Security Policy"},
		"a script that is not served": {`<script src="/none.js"></script>`, "Refused to execute script"},
	} {
		t.Run(name, func(t *testing.T) {
			page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/" {
					http.NotFound(w, r)
					return
				}
				w.Header().Set("Content-Type", "text/html")
				_, _ = w.Write([]byte("<!DOCTYPE html>" + tc.body))
			})
			server := httptest.NewUnstartedServer(nil)
			server.Config.Handler = httpapi.Protect(page, server.Listener.Addr().String())
			server.Start()
			defer server.Close()
			if _, complaints := browser.Open(t, server.URL+"/"); !strings.Contains(strings.Join(complaints, "\n"), tc.want) {
				t.Errorf("the browser says %q, want %q", complaints, tc.want)
			}
		})
	}
}
