// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// layerTar writes the entries as a tar stream that depends on nothing but their
// content: sorted, complete with parent folders, without times.
func layerTar(entries []Entry) ([]byte, error) {
	complete, err := withParents(entries)
	if err != nil {
		return nil, err
	}
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for _, name := range slices.Sorted(maps.Keys(complete)) {
		if err := writeEntry(writer, complete[name]); err != nil {
			return nil, fmt.Errorf("adding %s: %w", name, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("closing the layer: %w", err)
	}
	return buffer.Bytes(), nil
}

// withParents indexes the entries by path and adds the folders above them. The
// same path twice is an error: which one wins would depend on the order.
func withParents(entries []Entry) (map[string]Entry, error) {
	complete := make(map[string]Entry, len(entries))
	for _, entry := range entries {
		clean := path.Clean(entry.Path)
		if !path.IsAbs(clean) || clean == "/" {
			return nil, fmt.Errorf("image path %q: want an absolute path below /", entry.Path)
		}
		if _, twice := complete[clean]; twice {
			return nil, fmt.Errorf("image path %s is given twice", clean)
		}
		entry.Path = clean
		complete[clean] = entry
	}
	for _, entry := range entries {
		for folder := path.Dir(path.Clean(entry.Path)); folder != "/"; folder = path.Dir(folder) {
			above, exists := complete[folder]
			if exists && !above.Folder {
				return nil, fmt.Errorf("image path %s is below %s, which is not a folder", entry.Path, folder)
			}
			if !exists {
				complete[folder] = Entry{Path: folder, Folder: true}
			}
		}
	}
	return complete, nil
}

func writeEntry(writer *tar.Writer, entry Entry) error {
	header := &tar.Header{
		Name:    strings.TrimPrefix(entry.Path, "/"),
		ModTime: time.Unix(0, 0),
		Uid:     entry.Owner,
		Gid:     entry.Owner,
		Mode:    tarMode(entry),
		Format:  tar.FormatPAX,
	}
	data := entry.Data
	switch {
	case entry.Folder:
		header.Typeflag, header.Name = tar.TypeDir, header.Name+"/"
	case entry.Link != "":
		header.Typeflag, header.Linkname = tar.TypeSymlink, entry.Link
	default:
		if entry.Source != "" {
			var err error
			if data, err = os.ReadFile(entry.Source); err != nil {
				return err
			}
		}
		header.Typeflag, header.Size = tar.TypeReg, int64(len(data))
	}
	if err := writer.WriteHeader(header); err != nil {
		return err
	}
	if header.Typeflag != tar.TypeReg {
		return nil
	}
	_, err := writer.Write(data)
	return err
}

// tarMode is given, not taken from the source file, whose mode depends on the
// umask of whoever built it.
func tarMode(entry Entry) int64 {
	mode := entry.Mode
	switch {
	case mode == 0 && entry.Folder:
		mode = 0o755
	case mode == 0:
		mode = 0o644
	}
	bits := int64(mode.Perm())
	if mode&fs.ModeSticky != 0 {
		bits |= 0o1000
	}
	return bits
}
