// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/internal/agent"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

var kept = []*ads.Resource{
	{Type: ads.Cluster, Name: "shop/pay|80|stable", Version: ads.Version{Hash: "a"}, Body: []byte{1, 2}},
	{Type: ads.Route, Name: "shop/pay|80", Version: ads.Version{Sequence: 7, Hash: "b"}, Body: []byte{3}},
}

func TestAStoreHasWhatWasSaved(t *testing.T) {
	s := agent.Store{Path: filepath.Join(t.TempDir(), "resources")}
	if held, err := s.Load(); err != nil || held != nil {
		t.Fatalf("a store that is not there has %v (%v)", held, err)
	}
	if err := s.Save(kept); err != nil {
		t.Fatal(err)
	}
	held, err := s.Load()
	if diff := cmp.Diff(kept, held); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestAStoreThatIsDamagedIsRefusedWhole(t *testing.T) {
	s := agent.Store{Path: filepath.Join(t.TempDir(), "resources")}
	if err := s.Save(kept); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(s.Path)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"cut":          whole[:len(whole)-3],
		"empty":        {},
		"edited":       bytes.Replace(whole, []byte("pay"), []byte("pax"), 1),
		"without head": whole[strings.Index(string(whole), "\n")+1:],
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(s.Path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			if held, err := s.Load(); err == nil || held != nil {
				t.Errorf("it has %v (%v)", held, err)
			}
		})
	}
}

func FuzzStore(f *testing.F) {
	s := agent.Store{Path: filepath.Join(f.TempDir(), "resources")}
	if err := s.Save(kept); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(s.Path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "resources")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if held, err := (agent.Store{Path: path}).Load(); err == nil && (agent.Store{Path: path}).Save(held) != nil {
			t.Error("what was read cannot be saved")
		}
	})
}
