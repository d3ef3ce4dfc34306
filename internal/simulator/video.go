package simulator

import (
	"encoding/binary"
	"net/http"
	"strconv"
	"time"
)

// film is the shortest MP4 that is one: a file type, a movie header without
// tracks, and no media.
func film() []byte {
	box := func(name string, content []byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(8+len(content)))
		return append(append(b, name...), content...)
	}
	header := make([]byte, 100)
	binary.BigEndian.PutUint32(header[12:], 1000) // time scale
	binary.BigEndian.PutUint32(header[20:], 0x00010000)
	binary.BigEndian.PutUint16(header[24:], 0x0100)
	binary.BigEndian.PutUint32(header[36:], 0x00010000) // unity matrix
	binary.BigEndian.PutUint32(header[52:], 0x00010000)
	binary.BigEndian.PutUint32(header[68:], 0x40000000)
	binary.BigEndian.PutUint32(header[96:], 1) // next track
	out := box("ftyp", []byte("isom\x00\x00\x02\x00isomiso2mp41"))
	out = append(out, box("moov", box("mvhd", header))...)
	return append(out, box("mdat", nil)...)
}

// resultKept is how long the real provider keeps a video.
const resultKept = 24 * 60 * 60

// videoObject is the job in OpenAI's shape, which knows four states.
func videoObject(j job) object {
	v := object{
		"id": j.id, "object": "video", "model": j.model, "status": "queued", "progress": 0, "created_at": j.created.Unix(),
		"completed_at": nil, "expires_at": nil, "prompt": j.prompt, "size": j.size,
		"seconds": strconv.FormatFloat(j.seconds, 'f', -1, 64), "remixed_from_video_id": nil, "error": nil,
	}
	switch j.status {
	case jobQueued:
	case jobRunning:
		v["status"], v["progress"] = "in_progress", 50
	case jobSucceeded:
		v["status"], v["progress"] = "completed", 100
		v["completed_at"], v["expires_at"] = j.finished.Unix(), j.finished.Unix()+resultKept
	default:
		v["status"], v["error"] = "failed", object{"code": j.status, "message": jobToldToFail}
	}
	return v
}

func (c *call) createVideo() answer {
	if c.fields.text("size") == "" {
		c.fields["size"] = "720x1280"
	}
	j, ok := c.createJob("video_", c.fields, "seconds", 4)
	if !ok {
		return c.invalid("Invalid value: 'seconds'.")
	}
	return videoAnswer(j)
}

func videoAnswer(j job) answer {
	a := jsonAnswer(videoObject(j))
	a.header = http.Header{"Openai-Poll-After-Ms": {"10"}}
	return a
}

func (c *call) noVideo() answer {
	return c.fail(http.StatusNotFound, "Video with id '"+c.arg+"' not found.")
}

func (c *call) pollVideo() answer {
	j, ok := c.job((*job).poll)
	if !ok {
		return c.noVideo()
	}
	return videoAnswer(j)
}

func (c *call) listVideos() answer {
	data := []object{}
	for _, j := range c.p.jobs.latest(20) {
		data = append(data, videoObject(j))
	}
	return jsonAnswer(page(data, object{"object": "list"}))
}

func (c *call) videoContent() answer {
	j, ok := c.job((*job).look)
	switch {
	case !ok:
		return c.noVideo()
	case j.status != jobSucceeded:
		return c.fail(http.StatusConflict, "Video is not ready yet, use GET /v1/videos/{video_id} to check status.")
	}
	return answer{kind: "video/mp4", body: film()}
}

// deleteVideo removes a video in any state, so that an unfinished one is
// cancelled.
func (c *call) deleteVideo() answer {
	j, ok := c.job(func(j *job, now time.Time) {
		if j.status == jobRunning {
			j.status = jobQueued
		}
		j.cancel(now)
	})
	if !ok {
		return c.noVideo()
	}
	c.p.jobs.remove(j.id)
	c.served.Seconds = 0
	return jsonAnswer(object{"id": j.id, "object": "video.deleted", "deleted": true})
}
