#!/usr/bin/perl
# ImageDecoder: files of pictures of every kind that the formats have, against the pixels that were put in or pillow's; files that are none, that claim to be
# huge or are cut off are refused with the node's name and what is wrong. Under the sanitizers, too, where build/debug is built. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
my $python = python_with('numpy, onnx.helper, PIL', qw(onnx numpy pil));
is(system("$python tests/onnx/pictures $dir"), 0, 'the models are made');

# What a run says, after its status.
sub said {
  my ($sinter, $model, @more) = @_;
  open my $out, '-|', "timeout 120 $sinter run $model --device host @more 2>&1" or die $!;
  my $words = join '', <$out>;
  close $out;
  return (($? >> 8) . ": $words");
}

my %formats;
for my $build (grep { -x "$_/sinter" } $ENV{SNT_BUILD} // 'build/release', 'build/debug') {
  my $sinter = "$build/sinter";
  my %lacks = map { $_ => 1 } grep { my $f = $_; said($sinter, (glob "$dir/cut/$f/*")[-1] . '/model.onnx') =~ /has no decoder/ } qw(jpeg tiff webp jpeg2000);
  my $lacking = join '|', keys %lacks;
  my @here = grep { !$lacking || !m{/(?:$lacking)(?:_|/|$)} } glob("$dir/good/*"), glob("$dir/bad/*"), glob("$dir/cut/*");
  note("$build decodes no $_") for sort keys %lacks;

  my @good = grep { m{/good/} } @here;
  my $list = `$sinter onnx-test --device host --jobs 2 @good 2>&1`;
  like($list, qr/^# ${\scalar @good} of ${\scalar @good} passed$/m, @good . " kinds of files, $build") or diag($list);

  for my $bad (grep { m{/bad/} } @here) {
    open my $in, '<', "$bad/said" or die $!;
    my $words = <$in>;
    like(said($sinter, "$bad/model.onnx"), qr/^1: not supported: decode \(ImageDecoder\): \Q$words\E/, $bad =~ s{.*/}{}r . ", $build");
  }
  for my $format (map { s{.*/}{}r } grep { m{/cut/} } @here) {
    my @wrong = grep { $_ !~ /^1: not supported: decode \(ImageDecoder\): (?:$format: \S|the file is none of)/ }
      map { said($sinter, "$_/model.onnx") } glob "$dir/cut/$format/*";
    is("@wrong", '', "cut off anywhere: $format, $build");
  }
}

# A file that is an input has to be given when the model is loaded; one that comes late is refused with what to do.
is(system("$python tests/onnx/recent $dir/recent"), 0, 'models whose file is an input');
my $png = "$dir/recent/imagedecoder_20_png";
is(system(qq{cd /; $python -c 'import onnx; m = onnx.load("$png/model.onnx"); m.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"; onnx.save(m, "$png/model.onnx")'}), 0, 'of any length');
like(said($sinter, "$png/model.onnx", '--dim n=100'), qr/decode|node \(ImageDecoder\): input 0 \(x0\): the file must be known .*--fix NAME=FILE/, 'a file that is not known');
is(system("cd /; $python -c 'from PIL import Image; Image.new(\"RGB\", (14, 9), (1, 2, 3)).save(\"$dir/small.png\")'"), 0, 'a file');
system("gzip -c <$dir/small.png >$dir/none.gz");
like(said($sinter, "$png/model.onnx", "--fix x0=$dir/small.png --output y0=$dir/out.npy --quiet"), qr/^0:/, '--fix gives it');
my $found = `cd /; $python -c 'import numpy; a = numpy.load("$dir/out.npy"); print(a.shape, a.reshape(-1, 3).min(0), a.reshape(-1, 3).max(0))'`;
is($found, "(9, 14, 3) [1 2 3] [1 2 3]\n", 'the pixels of that file');
like(said($sinter, "$png/model.onnx", "--fix x0=$dir/none.gz"), qr/^1:.*the file is none of bmp pnm png/s, 'another file');
like(said($sinter, "$png/model.onnx", "--fix x0=$dir/out.npy"), qr/^1:.*input x0 is \[n\]; \[9,14,3\] is given/s, 'pixels are no file');
like(said($sinter, "$png/model.onnx", "--fix x0=$dir/absent.png"), qr/^2:.*absent\.png/s, 'no such file');
like(said($sinter, "$png/model.onnx", "--fix y7=$dir/small.png"), qr/^2:.*no input is named y7/s, 'no such input');
done_testing();
