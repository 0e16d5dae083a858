package s3express

import (
	"crypto/md5" //nolint:gosec // what bulk deletes may carry
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"io"
)

const maxBody = 512 << 20

// readBody takes the body whole, and holds it against the checksums that came with it.
func (s *Server) readBody(c *call) *refusal {
	if c.ContentLength < 0 {
		return &refusal{411, "MissingContentLength", "You must provide the Content-Length HTTP header."}
	}
	if c.ContentLength > maxBody {
		return &refusal{400, "EntityTooLarge", "Your proposed upload exceeds the maximum allowed size"}
	}
	if why := s.early(c); why != nil {
		return why
	}
	var err error
	if c.body, err = io.ReadAll(c.Body); err != nil || int64(len(c.body)) != c.ContentLength {
		return &refusal{400, "IncompleteBody", "You did not provide the number of bytes specified by the Content-Length HTTP header"}
	}
	if sum := c.Header.Get("X-Amz-Content-Sha256"); sum != "UNSIGNED-PAYLOAD" {
		if got := sha256.Sum256(c.body); hex.EncodeToString(got[:]) != sum {
			return &refusal{400, "XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed."}
		}
	}
	return checkSums(c)
}

// early refuses a conditional write before its body was read, as S3 may.
func (s *Server) early(c *call) *refusal {
	if c.Method != "PUT" || c.Header.Get("If-None-Match") != "*" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[c.key] != nil {
		return precondition
	}
	return nil
}

func checkSums(c *call) *refusal {
	bad := &refusal{400, "BadDigest", "The checksum you specified did not match what we received."}
	md := md5.Sum(c.body) //nolint:gosec // as above
	for name, got := range map[string][]byte{
		"X-Amz-Checksum-Crc32":  binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(c.body)),
		"X-Amz-Checksum-Crc32c": binary.BigEndian.AppendUint32(nil, crc32.Checksum(c.body, crc32.MakeTable(crc32.Castagnoli))),
		"Content-Md5":           md[:],
	} {
		if want := c.Header.Get(name); want != "" && want != base64.StdEncoding.EncodeToString(got) {
			return bad
		}
	}
	return nil
}

// summed tells whether a body came with a checksum that the server holds it to.
func summed(c *call) bool {
	return c.Header.Get("X-Amz-Checksum-Crc32") != "" || c.Header.Get("X-Amz-Checksum-Crc32c") != "" || c.Header.Get("Content-Md5") != ""
}
