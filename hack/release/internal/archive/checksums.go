// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Sum is the SHA-256 of one file.
type Sum struct{ Name, SHA256 string }

// Checksums hashes each file below the folder, in the order of names, which have slashes.
func Checksums(folder string) ([]Sum, error) {
	var sums []Sum
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		sum, err := hashFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		sums = append(sums, Sum{Name: filepath.ToSlash(name), SHA256: sum})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("computing checksums: %w", err)
	}
	slices.SortFunc(sums, func(a, b Sum) int { return strings.Compare(a.Name, b.Name) })
	return sums, nil
}

func hashFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // only read
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// FormatChecksums writes them as `sha256sum --check` reads them.
func FormatChecksums(sums []Sum) []byte {
	var text strings.Builder
	for _, sum := range sums {
		fmt.Fprintf(&text, "%s  %s\n", sum.SHA256, sum.Name)
	}
	return []byte(text.String())
}
