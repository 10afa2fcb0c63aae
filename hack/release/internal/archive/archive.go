// SPDX-License-Identifier: Apache-2.0

// Package archive packs the plugin for people, and says what is in a folder: checksums,
// and the manifest by which krew installs the plugin.
package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"time"
)

// File is one file of an archive.
type File struct {
	Name    string
	Content []byte
	Mode    fs.FileMode
}

// TarGzip packs files in their order; nothing but them and the time decides the bytes.
func TarGzip(files []File, at time.Time) ([]byte, error) {
	var buffer bytes.Buffer
	packed, err := gzip.NewWriterLevel(&buffer, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("compressing the archive: %w", err)
	}
	writer := tar.NewWriter(packed)
	for _, file := range files {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: file.Name, Size: int64(len(file.Content)), Mode: int64(file.Mode.Perm()),
			ModTime: at.UTC().Truncate(time.Second), Format: tar.FormatUSTAR,
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("adding %s to the archive: %w", file.Name, err)
		}
		if _, err := writer.Write(file.Content); err != nil {
			return nil, fmt.Errorf("adding %s to the archive: %w", file.Name, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("ending the archive: %w", err)
	}
	if err := packed.Close(); err != nil {
		return nil, fmt.Errorf("ending the archive: %w", err)
	}
	return buffer.Bytes(), nil
}

// Zip packs files for Windows, in the same way.
func Zip(files []File, at time.Time) ([]byte, error) {
	var buffer bytes.Buffer
	writer := zip.NewWriter(&buffer)
	for _, file := range files {
		header := &zip.FileHeader{Name: file.Name, Method: zip.Deflate, Modified: at.UTC()}
		header.SetMode(file.Mode.Perm())
		entry, err := writer.CreateHeader(header)
		if err != nil {
			return nil, fmt.Errorf("adding %s to the archive: %w", file.Name, err)
		}
		if _, err := entry.Write(file.Content); err != nil {
			return nil, fmt.Errorf("adding %s to the archive: %w", file.Name, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("ending the archive: %w", err)
	}
	return buffer.Bytes(), nil
}
