package simulator

import (
	"encoding/binary"
	"net/http"
	"strconv"
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
		v["status"], v["error"] = "failed", object{"code": j.status, "message": "The job was told to end like this."}
	}
	return v
}

func (p *Provider) createVideo(c *call) answer {
	if c.fields.text("prompt") == "" {
		return c.fail(http.StatusBadRequest, "Missing required parameter: 'prompt'.")
	}
	seconds, ok := length(c.fields, "seconds", 4)
	if !ok {
		return c.fail(http.StatusBadRequest, "Invalid value: 'seconds'.")
	}
	if c.fields.text("size") == "" {
		c.fields["size"] = "720x1280"
	}
	return videoAnswer(p.createJob(c, "video_", seconds))
}

func videoAnswer(j job) answer {
	a := jsonAnswer(videoObject(j))
	a.header = http.Header{"Openai-Poll-After-Ms": {"10"}}
	return a
}

func (c *call) noVideo() answer {
	return c.fail(http.StatusNotFound, "Video with id '"+c.arg+"' not found.")
}

func (p *Provider) pollVideo(c *call) answer {
	j, ok := p.jobs.poll(c.arg, p.opts.Now())
	if !ok {
		return c.noVideo()
	}
	c.sawJob(j)
	return videoAnswer(j)
}

func (p *Provider) listVideos(c *call) answer {
	const page = 20
	data := []object{}
	for _, j := range p.jobs.list(page) {
		data = append(data, videoObject(j))
	}
	reply := object{"object": "list", "data": data, "first_id": nil, "last_id": nil, "has_more": false}
	if len(data) > 0 {
		reply["first_id"], reply["last_id"] = data[0]["id"], data[len(data)-1]["id"]
	}
	return jsonAnswer(reply)
}

func (p *Provider) videoContent(c *call) answer {
	j, ok := p.jobs.get(c.arg)
	if !ok {
		return c.noVideo()
	}
	c.sawJob(j)
	if j.status != jobSucceeded {
		return c.fail(http.StatusConflict, "Video is not ready yet, use GET /v1/videos/{video_id} to check status.")
	}
	return answer{kind: "video/mp4", body: film()}
}

// deleteVideo removes a video in any state, so that an unfinished one is
// cancelled.
func (p *Provider) deleteVideo(c *call) answer {
	j, ok := p.jobs.remove(c.arg)
	if !ok {
		return c.noVideo()
	}
	if j.status == jobQueued || j.status == jobRunning {
		j.status = jobCancelled
	}
	c.sawJob(j)
	c.served.Seconds = 0
	return jsonAnswer(object{"id": j.id, "object": "video.deleted", "deleted": true})
}
