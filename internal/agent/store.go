// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/plumbline-dev/plumbline/internal/atomicfile"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// Store keeps the resources that are in force in a file.
type Store struct{ Path string }

// storeHeader begins the first line, which ends with the SHA-256 of all behind it.
const storeHeader = "plumbline-agent-1 "

// maxStore bounds the file, in bytes: resources of some 10,000 Services.
const maxStore = 256 << 20

// stored is one resource in the file.
type stored struct {
	Type    ads.Type
	Name    string
	Version string
	Body    []byte
}

// Load reads the resources; none if there is no file. A file that is not as [Store.Save] wrote it is
// an error, and no resource of it counts.
func (s Store) Load() ([]*ads.Resource, error) {
	info, err := os.Stat(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && info.Size() > maxStore {
		err = fmt.Errorf("it has %d bytes, want at most %d", info.Size(), maxStore)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(s.Path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the stored resources: %w", err)
	}
	return decodeStore(data)
}

func decodeStore(data []byte) ([]*ads.Resource, error) {
	header, body, _ := bytes.Cut(data, []byte("\n"))
	sum := sha256.Sum256(body)
	if string(header) != storeHeader+hex.EncodeToString(sum[:]) {
		return nil, errors.New("reading the stored resources: the checksum differs")
	}
	var all []stored
	if err := json.Unmarshal(body, &all); err != nil {
		return nil, fmt.Errorf("reading the stored resources: %w", err)
	}
	resources := make([]*ads.Resource, 0, len(all))
	for _, one := range all {
		version, err := ads.ParseVersion(one.Version)
		if err == nil && (one.Type < ads.Cluster || one.Type > ads.Route) {
			err = fmt.Errorf("type %d is not known", one.Type)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the stored resources: %w", err)
		}
		resources = append(resources, &ads.Resource{Type: one.Type, Name: one.Name, Version: version, Body: one.Body})
	}
	return resources, nil
}

// Save replaces the file at once: after a crash it is the one of before or the next one.
func (s Store) Save(resources []*ads.Resource) error {
	all := make([]stored, 0, len(resources))
	for _, r := range resources {
		all = append(all, stored{r.Type, r.Name, r.Version.String(), r.Body})
	}
	body, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("storing the resources: %w", err)
	}
	sum := sha256.Sum256(body)
	if err := atomicfile.Replace(s.Path, append([]byte(storeHeader+hex.EncodeToString(sum[:])+"\n"), body...), 0o600); err != nil {
		return fmt.Errorf("storing the resources: %w", err)
	}
	return nil
}
